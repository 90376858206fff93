"""Spark's checkpoint of a stream beside the stream's state: whether they belong together, and how far each is.

Spark writes the offsets of a batch before it runs, and its commit after. The state is replaced in between. So the state
is at the last planned batch, or one before it; a replayed batch that the state has already is skipped. Where the state
has lost its last batch and Spark has committed it (a file that was cut off), the commit is taken back, and Spark
delivers the batch again, from the same offsets; a batch that it has planned behind it is planned anew.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from ...errors import StreamError
from ..catalog.disk import remove_made
from .state import StreamState

_OFFSETS, _COMMITS, _METADATA = "offsets", "commits", "metadata"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint: the id of its query (empty before the first start), its last planned and last committed batch."""

    id: str = ""
    planned: int | None = None
    committed: int | None = None


def read_checkpoint(folder: Path) -> Checkpoint:
    """What a checkpoint folder says; an empty one where there is none."""
    found = ""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = str(json.loads((folder / _METADATA).read_text())["id"])
    return Checkpoint(found, _last(folder / _OFFSETS), _last(folder / _COMMITS))


def uncommit(folder: Path, batch: int) -> None:
    """Make Spark deliver a batch again when it next starts; what it has planned behind it, it plans anew.

    Spark runs the last planned batch: that of the next one would make it pass over this one.
    """
    behind = batch + 1
    remove_made(folder / _OFFSETS, {str(behind), f".{behind}.crc"}.__contains__)
    remove_made(folder / _COMMITS, {str(batch), f".{batch}.crc"}.__contains__)


def batch_to_repeat(name: str, state: StreamState, checkpoint: Checkpoint, *, lost: bool) -> int | None:
    """The batch whose commit is to be taken back before the stream goes on; None for none.

    Parameters
    ----------
    name : str
        Of the stream, for messages.
    state : StreamState
    checkpoint : Checkpoint
    lost : bool
        Whether the newest file of the state could not be read, and `state` is the one before it.

    Raises
    ------
    StreamError
        ``SKIMQL_CHECKPOINT_MISMATCH``, both ways.
    """
    if state.batch is None and not lost:
        if checkpoint.committed is not None:
            raise mismatch(
                name, f"the checkpoint has batches up to {checkpoint.committed}, and there is no state of any"
            )
        return None
    if state.batch is not None and checkpoint.id != state.checkpoint:
        known = f"of another query ({checkpoint.id})" if checkpoint.id else "new"
        raise mismatch(name, f"the state has batches up to {state.batch}, and the checkpoint is {known}")
    have = -1 if state.batch is None else state.batch
    planned = -1 if checkpoint.planned is None else checkpoint.planned
    committed = -1 if checkpoint.committed is None else checkpoint.committed
    if planned == have and committed in (have - 1, have):
        return None
    if planned == have + 1 and committed == have:
        return None
    if committed == have + 1 and (planned == committed or (lost and planned == committed + 1)):
        return committed
    raise mismatch(
        name,
        f"the state has batches up to {have}, the checkpoint has planned them up to {planned} and committed up to"
        f" {committed}",
    )


def mismatch(name: str, what: str) -> StreamError:
    """The error for a state and a checkpoint that do not belong together."""
    return StreamError(
        f"state and checkpoint of stream {name} do not belong together: {what}",
        "SKIMQL_CHECKPOINT_MISMATCH",
        hint="put back the one that is missing, from a copy of the catalog's folder; or CREATE OR REPLACE STREAM"
        f" {name} ..., which begins both anew",
    )


def _last(folder: Path) -> int | None:
    try:
        numbers = [int(f.name) for f in folder.iterdir() if f.name.isdecimal()]
    except OSError:
        return None
    return max(numbers, default=None)
