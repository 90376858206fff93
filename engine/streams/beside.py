"""The hash sketch beside a key sample: of the same stream, weight and key, a third of the bytes of both."""

from __future__ import annotations

from dataclasses import replace

from ...optimizer.methods import KEY_SAMPLE
from ...optimizer.plan import BYTES_PER_COUNTER, Synopsis

# Bytes of a kept key with its weight and of its part of the sketch beside it; and of what a sample has beside its keys.
ENTRY, BESIDE = 24, 32


def keys_in(rows: int, buckets: int) -> int:
    """How many keys a sample keeps in the bytes of a hash sketch, with the sketch beside it."""
    return max(1, (BYTES_PER_COUNTER * rows * buckets - BESIDE) // ENTRY)


def bytes_of_keys(keys: int) -> int:
    """The bytes of a sample of so many keys; `keys_in` the other way."""
    return ENTRY * keys + BESIDE


def sketch_beside(synopsis: Synopsis) -> Synopsis | None:
    """The hash sketch beside a key sample, of one counter a key; None of others."""
    if synopsis.method != KEY_SAMPLE:
        return None
    return replace(synopsis, method="hash", buckets=max(2, synopsis.buckets // synopsis.rows), sparse=False)
