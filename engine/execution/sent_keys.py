"""What is known of one table of a sampled class, once it has been read: its keys, and tuples drawn for their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...sketches.samples.known_keys import KnownKeys
from .sample_rows import Rows

Ints = npt.NDArray[np.int64]
Groups = tuple[int, ...]  # a number for each grouped vertex


@dataclass(frozen=True)
class Sent:
    """What is known of one member of the sampled class: in all, and for each combination of groups behind it.

    `vertices` are the grouped vertices of the plan behind the member, in the order of the numbers of a group; `drawn`
    has the tuples that were drawn for their values in the place of keys, by their numbers; `also` are keys that were
    asked for beside.
    """

    whole: KnownKeys
    parts: Mapping[tuple[int, ...], KnownKeys]
    vertices: tuple[int, ...]
    rows: Rows
    drawn: Mapping[tuple[int, ...], KnownKeys]
    also: Ints

    @property
    def nothing(self) -> KnownKeys:
        """The same of no key at all."""
        none = np.empty(0, np.int64)
        return replace(
            self.whole,
            keys=none,
            weights=self.whole.weights[:, :0],
            certain=none.astype(np.bool_),
            ranks=none.astype(np.float64),
        )

    def of(self, keys: Ints, other: Sent | None, others: Ints) -> Sent:
        """The same of tuples of some keys, by their numbers; what is known of `others` is that of another scan."""
        parts: dict[Groups, KnownKeys] = {}
        for source in [self] if other is None else [self, other]:
            here = np.isin(keys, others) == (source is other)
            for group, known in source.parts.items():
                at = np.searchsorted(known.keys, keys)
                here_too = here & (at < len(known.keys))
                here_too[here_too] = known.keys[at[here_too]] == keys[here_too]
                numbers = np.flatnonzero(here_too)
                own = _only(known, at[numbers], numbers)
                parts[group] = _both(parts[group], own) if group in parts else own
        return replace(self, parts=parts)


def _only(known: KnownKeys, at: Ints, keys: Ints) -> KnownKeys:
    """Some of the keys, by other names."""
    return replace(
        known, keys=keys, weights=known.weights[:, at], certain=known.certain[at], ranks=known.ranks[at]
    )


def _both(one: KnownKeys, other: KnownKeys) -> KnownKeys:
    """What two know of different keys."""
    keys = np.concatenate([one.keys, other.keys])
    order = np.argsort(keys, kind="stable")
    return replace(
        one,
        keys=keys[order],
        weights=np.concatenate([one.weights, other.weights], axis=1)[:, order],
        certain=np.concatenate([one.certain, other.certain])[order],
        ranks=np.concatenate([one.ranks, other.ranks])[order],
    )
