"""Kept sketches made without Spark: a table as arrays, the head and file that CREATE SKETCH would give it."""

from __future__ import annotations

import numpy as np

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.file import StoredSketch
from skimql.engine.catalog.form import Head, Measure
from skimql.engine.catalog.manifest import KnownTable
from skimql.engine.materialized.definition import stored
from skimql.engine.synopses import Built, Tally
from skimql.optimizer.plan import Attribute, Weight
from skimql.parser.join_graph import Column, TableSchema
from skimql.sketches.hashing.xi import derive_seed, make_family
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.sparse import SparseFirstSketch


def kept(
    name,
    table,
    keys,
    *,
    classes=None,
    summed=None,
    seed=1,
    rows=11,
    buckets=64,
    sparse=True,
    family="tabulation",
    condition=None,
    dtype="int64",
    **changes,
):
    """A sketch of the tuples whose join columns are `keys` (name -> values), with SUM of `summed` = (name, values)."""
    columns = {k: np.asarray(v, dtype=np.int64) for k, v in keys.items()}
    classes = classes or list(columns)
    families = tuple(make_family(family, derive_seed(seed, c)) for c in classes)
    weights = [(Weight(), None, "int64")]
    if summed is not None:
        expression = f"`{summed[0]}`"
        weights += [
            (Weight(expression), np.asarray(summed[1], dtype=dtype), dtype),
            (Weight(expression, presence=True), np.ones(len(summed[1]), dtype=np.int64), "int64"),
        ]
    built = []
    for _, values, kind in weights:
        sketch = SparseFirstSketch(ConvolutionSpec(families, rows, buckets, kind), None if sparse else 0)
        length = len(next(iter(columns.values()))) if columns else len(summed[1])
        if values is None and not columns:
            values = np.ones(length, dtype=np.int64)
        if length:
            sketch.update(list(columns.values()), values)
        mass = float(length if values is None else np.abs(values).sum())
        negative = 0 if values is None else int((values < 0).sum())
        built.append(Built(sketch, Tally(length, mass, negative), 1.0))
    head = Head(
        name=name,
        table=table,
        filter=condition,
        attributes=tuple(
            Attribute((f"`{k}`",), ("bigint",), c) for k, c in zip(columns, classes, strict=True)
        ),
        key_types=tuple(("bigint",) for _ in columns),
        families=families,
        method="hash" if len(columns) == 1 else "convolution",
        seed=seed,
        rows=rows,
        buckets=buckets,
        limit_bytes=int(sparse),
        measures=tuple(Measure(w, "int64", 1.0, Tally(), True, 0) for w, _, _ in weights),
        columns=schema_of(table, [*columns, *([summed[0]] if summed else [])]).columns,
        ansi=True,
        time_zone="UTC",
        zoned=False,
        lineage=(),
        created="2026-11-28T00:00:00Z",
        updated="2026-11-28T00:00:00Z",
    )
    return stored(replace_in(head, changes), built)


def replace_in(head, changes):
    """The head with some of its fields changed."""
    from dataclasses import replace

    return replace(head, **changes)


def schema_of(table, names):
    """A table of BIGINT columns."""
    return TableSchema(table, tuple(Column(n, "bigint") for n in names))


def remember(catalog: Catalog, *sketches: StoredSketch, ansi=True, time_zone="UTC"):
    """Put sketches and the schemas of their tables into a catalog."""
    tables: dict[str, TableSchema] = {}
    for sketch in sketches:
        have = tables.get(sketch.head.table, TableSchema(sketch.head.table, ()))
        names = [c.name for c in (*have.columns, *sketch.head.columns)]
        tables[sketch.head.table] = schema_of(sketch.head.table, dict.fromkeys(names))
    catalog.remember({n: KnownTable(t, None, {}) for n, t in tables.items()}, ansi, time_zone)
    catalog.put(*sketches)
    return catalog


def same(left: StoredSketch, right: StoredSketch) -> bool:
    """Whether two stored sketches are equal in every bit that matters."""
    if left.head != right.head:
        return False
    for a, b in zip(left.built, right.built, strict=True):
        one, other = a.sketch.state(), b.sketch.state()
        if a.scale != b.scale or a.tally != b.tally or set(one) != set(other):
            return False
        if any(one[n].dtype != other[n].dtype or not np.array_equal(one[n], other[n]) for n in one):
            return False
    return True
