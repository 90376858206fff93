"""Statistics of relations in memory: all counted, or as a pilot sees them."""

import numpy as np
import pyarrow as pa
import pytest
from support.questions import query

from skimql.engine.memory_backend.statistics import gather
from skimql.engine.memory_backend.tables import MemoryTables

KEYS = np.concatenate([np.arange(4_000), np.zeros(1_000, np.int64)])
TABLES = MemoryTables({"a": pa.table({"k": KEYS, "v": np.arange(5_000)}), "b": pa.table({"k": [1, None, 3]})})


def of(rest="", **options):
    asked = TABLES.typed(query(f"COUNT(*) FROM a JOIN b ON a.k = b.k {rest}", TABLES))
    return gather(asked, TABLES, **options)


def test_all_is_counted():
    a, b = of()
    (attribute,) = a.attributes
    assert (a.tuples, attribute.distinct, attribute.self_join_size) == (5_000, 4_000, 3_999 + 1_001**2)
    assert (b.tuples, b.scanned, b.attributes[0].distinct) == (2, 3, 2)


def test_behind_a_filter_only_the_scan_knows_the_others():
    a, _ = of("WHERE a.v < 100")
    assert (a.tuples, a.scanned) == (100, 5_000)


def test_without_looking_only_numbers_of_rows_are_told():
    a, _ = of("WHERE a.v < 100", pilot=False)
    assert (a.tuples, a.scanned, a.source) == (None, 5_000.0, "row count")
    assert of(pilot=False)[0].tuples == 5_000.0


def test_a_pilot_tells_about_as_much_from_fewer():
    (attribute,) = of(pilot_tuples=2_000)[0].attributes
    assert attribute.distinct == pytest.approx(4_000, rel=0.15)
    assert attribute.self_join_size == pytest.approx(1_001**2, rel=0.3)
