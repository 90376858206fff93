"""A kept sketch as a table of sketches in bytes, as the SQL functions of sketches make and read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery
from ...sketches.joins.convolution import ConvolutionSpec
from ...sketches.joins.sparse import SparseFirstSketch
from ...sketches.stored_form import Meaning, to_bytes
from ..catalog.file import StoredSketch
from ..catalog.form import Head, Measure
from ..catalog.texts import from_text
from ..sources.keys import INTEGER_TYPES
from ..synopses import Built

if TYPE_CHECKING:
    import pyarrow as pa


def sketch_table(stored: StoredSketch) -> pa.Table:
    """A row for each group and weight of a kept sketch.

    Returns
    -------
    pyarrow.Table
        The columns of its GROUP BY, by their expressions; ``weight``, what is summed, NULL of counts; ``sketch``.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_NO_SKETCH`` where its synopses are no counters of join keys.
    """
    import pyarrow as pa

    head = stored.head
    names = [] if head.groups is None else [e.strip("`") for e in head.groups.expressions]
    types = [] if head.groups is None else head.groups.types
    groups = [()] if head.groups is None else head.groups.values
    rows = [
        {
            **{n: from_text(v, t, head.time_zone) for n, v, t in zip(names, values, types, strict=True)},
            "weight": measure.weight.expression,
            "sketch": _bytes(head, measure, built),
        }
        for values, of_group in zip(groups, stored.groups, strict=True)
        for measure, built in zip(head.measures, of_group, strict=True)
        # Whether a weight is NULL has no function of its own.
        if not measure.weight.presence
    ]
    fields = pa.Table.from_pylist(rows).schema
    for name, kind in (("weight", pa.string()), ("sketch", pa.binary())):
        fields = fields.set(fields.get_field_index(name), pa.field(name, kind))
    return pa.Table.from_pylist(rows, fields)


def _bytes(head: Head, measure: Measure, built: Built) -> bytes:
    kept = built.sketch if not hasattr(built.sketch, "plain") else built.linear
    if not (
        isinstance(kept, SparseFirstSketch) and isinstance(kept.spec, ConvolutionSpec) and kept.spec.families
    ):
        raise UnsupportedQuery(
            f"sketch {head.name} is of the method {head.method}, which the functions of sketches do not read",
            "SKIMQL_NO_SKETCH",
            hint="CREATE SKETCH ... USING hash",
        )
    sketch = kept.copy()
    counts = measure.weight.expression is None
    sketch.tuples = built.tally.tuples
    meaning = Meaning(
        tuple(_key_type(a.key_types) for a in head.attributes),
        round(built.scale),
        "counts" if counts else "sums",
    )
    return to_bytes(sketch, meaning)


def _key_type(types: tuple[str, ...]) -> str:
    """Integers of any width are BIGINTs, as is the fingerprint of several keys."""
    return "bigint" if len(types) > 1 or types[0] in INTEGER_TYPES else types[0]
