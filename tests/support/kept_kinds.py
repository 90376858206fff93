"""Kept sketches of every kind, made without Spark: of two columns, with SUM where the kind keeps one, and with groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skimql.engine.catalog.form import Groups, Head, Measure
from skimql.engine.catalog.kinds.registry import KINDS
from skimql.engine.materialized.definition import stored
from skimql.engine.synopses import Built, Tally
from skimql.optimizer.plan import Attribute, Weight
from skimql.parser.join_graph import Column
from skimql.sketches.hashing.xi import derive_seed, make_family

KEYS = np.arange(60, dtype=np.int64) % 11
PARTNERS = np.arange(60, dtype=np.int64) % 7
VALUES = np.arange(60, dtype=np.int64) - 20
WEIGHTS = (Weight(), Weight("`v`"), Weight("`v`", presence=True))

# Method, and whether it still has everything: small ones of each form.
FORMS = {
    "hash map": ("hash", {}),
    "hash": ("hash", {"limit_bytes": 0}),
    "dense hash map": ("hash", {"parameters": (("dense", 2),)}),
    "dense hash": ("hash", {"limit_bytes": 0, "parameters": (("dense", 2),)}),
    "convolution": ("convolution", {"limit_bytes": 0}),
    "total": ("total", {"limit_bytes": 0}),
    "agms map": ("agms", {}),
    "agms": ("agms", {"limit_bytes": 0}),
    "skimmed": ("skimmed", {"parameters": (("domain_bits", 20), ("level_buckets", 8), ("level_rows", 3))}),
    "all keys": ("key_sample", {}),
    "key sample": ("key_sample", {"buckets": 4}),
    "two levels": ("two_level", {"buckets": 4, "parameters": (("dense", 2),)}),
    "all entries": ("sample_sketch", {"parameters": (("dense", 0), ("sampled", 1))}),
    "sampled table": ("sample_sketch", {"buckets": 2, "parameters": (("dense", 2), ("sampled", 0))}),
    "level map": ("distinct", {"rows": 4, "buckets": 16}),
    "level": ("distinct", {"rows": 4, "buckets": 16, "limit_bytes": 0}),
    "pair map": ("join_distinct", {"rows": 4, "buckets": 8}),
    "pairs": ("join_distinct", {"rows": 4, "buckets": 8, "limit_bytes": 0}),
}


def of_kind(name, method, *, groups=0, seed=1, **changes):
    """A stored sketch of 60 tuples of table t; with `groups`, one of each remainder of their numbers."""
    attributes = (
        2 if method in ("convolution", "join_distinct", "sample_sketch") else KINDS[method].attributes[0]
    )
    columns = dict(zip(["k", "l"][:attributes], (KEYS, PARTNERS), strict=False))
    numbers = np.arange(60) % groups if groups else None
    values = tuple((None if n == 0 else f"g{n}", str(n)) for n in range(groups))
    by = Groups(("`g`", "`h`"), ("string", "bigint"), values, ()) if groups else None
    return of_table(name, method, "t", columns, VALUES, numbers, by, seed=seed, **changes)


def of_table(name, method, table, columns, summed, numbers=None, groups=None, *, seed=1, **changes):
    """A stored sketch of a table: its key columns by class, and the number of the group of each tuple."""
    kind = KINDS[method]
    weights = WEIGHTS if kind.weighted and summed is not None else WEIGHTS[:1]
    head = Head(
        name=name,
        table=table,
        filter=None,
        attributes=tuple(Attribute((f"`{c}`",), ("bigint",), c) for c in columns),
        key_types=tuple(("bigint",) for _ in columns),
        families=tuple(make_family("tabulation", derive_seed(seed, c)) for c in columns),
        method=method,
        seed=seed,
        rows=3,
        buckets=64,
        limit_bytes=1 << 20,
        measures=tuple(Measure(w, "int64", 1.0, Tally(), True, 0) for w in weights),
        columns=tuple(Column(c, "bigint") for c in dict.fromkeys([*columns, "k", "l", "v", "g"])),
        ansi=True,
        time_zone="UTC",
        zoned=False,
        lineage=(),
        created="2026-11-28T00:00:00Z",
        updated="2026-11-28T00:00:00Z",
        groups=groups,
    )
    head = replace(head, **changes)
    built = []
    length = len(next(iter(columns.values()))) if columns else len(summed)
    for number in range(1 if groups is None else len(groups.values)):
        mine = np.full(length, True) if numbers is None else numbers == number
        built += _built(
            head, [c[mine] for c in columns.values()], None if summed is None else summed[mine], mine
        )
    return stored(head, built)


def _built(head, columns, summed, mine):
    kind = head.kind
    synopses = [
        kind.empty(head.size(m), np.array([1, 3])[: dict(head.parameters).get("dense", 0)])
        for m in head.measures[: head.synopses]
    ]
    ones = np.ones(int(mine.sum()), np.int64)
    weights = [ones, summed, ones][: len(head.measures)]
    kind.update(synopses, columns, weights)
    tallies = [Tally(len(w), float(np.abs(w).sum()), int((w < 0).sum())) for w in weights]
    return [Built(synopses[0 if kind.joint else n], t, 1.0) for n, t in enumerate(tallies)]


def all_kinds():
    """One of each form, and some with groups."""
    return [
        *(of_kind(name, method, **sizes) for name, (method, sizes) in FORMS.items()),
        *(
            of_kind(f"{name} by group", method, groups=3, **sizes)
            for name, (method, sizes) in FORMS.items()
            if name
            in (
                "hash map",
                "hash",
                "dense hash",
                "agms",
                "skimmed",
                "key sample",
                "two levels",
                "sampled table",
                "level",
                "pairs",
            )
        ),
    ]
