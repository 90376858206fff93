"""The random graphs of the Join-Distinct paper: R(a, b) and S(b, c), each edge present with probability q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    """Distinct tuples of both relations, and the exact sizes of the three projections of their join."""

    r: tuple[Keys, Keys]  # a, b
    s: tuple[Keys, Keys]  # c, b
    pairs: int  # distinct (a, c)
    one_sided: int  # distinct (a, b)
    full: int  # distinct (a, b, c)


def random_graph(nodes: int, q: float, data_seed: int) -> Graph:
    """A graph of nodes x nodes x nodes."""
    rng = np.random.default_rng(data_seed)
    r, s = rng.random((nodes, nodes)) < q, rng.random((nodes, nodes)) < q
    pairs = int(((r.astype(np.float32) @ s.T.astype(np.float32)) > 0).sum())
    full = int(r.sum(axis=0) @ s.sum(axis=0))
    (a, b), (c, b2) = np.nonzero(r), np.nonzero(s)
    return Graph((a, b), (c, b2), pairs, int(r[:, s.any(axis=0)].sum()), full)
