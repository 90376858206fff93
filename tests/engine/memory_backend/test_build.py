"""Sketches of a plan in memory."""

import numpy as np
import pyarrow as pa
import pytest
from support.questions import query

from skimql.engine.memory_backend.build import build, explained
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.errors import DataError
from skimql.optimizer.choose import choose

TABLES = MemoryTables(
    {
        "a": pa.table({"k": [1, 1, 2, None], "v": [5, 6, 7, 8]}),
        "b": pa.table({"k": [1, 2, 2, 3], "v": [2**62, 2**62, 2**62, 1]}),
    }
)


def built(text):
    asked = TABLES.typed(query(text, TABLES))
    return choose(asked, 1, 3, 16), build(choose(asked, 1, 3, 16), TABLES, None)


def test_a_small_sketch_is_the_map_of_its_keys():
    plan, found = built("COUNT(*) FROM a JOIN b ON a.k = b.k WHERE a.v < 8")
    maps = {s.table: f.sketch.exact for s, f in zip(plan.synopses, found, strict=True)}
    assert sorted(zip(maps["a"].columns[0].tolist(), maps["a"].weights.tolist(), strict=True)) == [
        (1, 2),
        (2, 1),
    ]
    assert sorted(maps["b"].columns[0].tolist()) == [1, 2, 3]


def test_tallies_are_of_what_joins_and_of_what_it_weighs():
    plan, found = built("SUM(a.v) FROM a JOIN b ON a.k = b.k")
    tally = next(f.tally for s, f in zip(plan.synopses, found, strict=True) if s.weight.expression == "`v`")
    assert (tally.tuples, tally.mass, tally.negative) == (3, 18.0, 0)


def test_faults_name_their_table():
    with pytest.raises(DataError) as overflow:
        built("SUM(b.v) FROM a JOIN b ON a.k = b.k")
    assert overflow.value.code == "SKIMQL_OVERFLOW"
    assert "b" in overflow.value.message
    with pytest.raises(DataError) as failed, explained("SELECT", "t"):
        np.array(["x"]).astype(int)
    assert failed.value.code == "SKIMQL_SCAN_FAILED"
