"""Rows of groups: which are there, what HAVING and LIMIT decide, and what is doubtful."""

import numpy as np
import pyarrow as pa
import pytest
from support.questions import query
from support.schemas import XYZ

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.rows import groups_text, with_count

RNG = np.random.default_rng(8)
BACKEND = MemoryBackend(
    MemoryTables({n: pa.table({"k": RNG.integers(0, 50, 800), "g": RNG.integers(0, 6, 800)}) for n in "ab"})
)
ASK = "SELECT APPROXIMATE a.g, COUNT(*) n FROM a JOIN b ON a.k = b.k WHERE b.g < 3 GROUP BY a.g"


def answer(behind, **settings):
    return MemoryRun.of(f"{ASK} {behind}", BACKEND, Settings(error=None, **settings)).answer()


def test_a_grouped_query_counts_its_tuples_once():
    grouped = query("SUM(n) FROM x JOIN y ON x.id = y.id GROUP BY n", XYZ)
    assert len(with_count(grouped).aggregates) == 2
    assert with_count(with_count(grouped)) == with_count(grouped)
    plain = query("SUM(n) FROM x JOIN y ON x.id = y.id", XYZ)
    assert with_count(plain) is plain


def test_rows_are_ordered_and_cut_as_asked():
    every = answer("ORDER BY n DESC")
    values = [row[1].value for row in every.rows]
    assert values == sorted(values, reverse=True)
    assert [r[0] for r in answer("ORDER BY n DESC LIMIT 2 OFFSET 1").rows] == [r[0] for r in every.rows[1:3]]


def test_a_row_that_an_estimate_lets_in_is_uncertain_and_not_certified():
    settings = {"buckets": 32, "sparse": False}
    threshold = round(float(np.median([r[1].value for r in answer("", **settings).rows])))
    found = answer(f"HAVING COUNT(*) > {threshold}", **settings)
    assert any(found.uncertain)
    for row, uncertain in zip(found.rows, found.uncertain, strict=True):
        assert not (uncertain and row[1].certified)


@pytest.mark.parametrize(("number", "text"), [(1, "1 group"), (2000, "2,000 groups")])
def test_groups_are_counted_for_people(number, text):
    assert groups_text(number) == text


def test_what_is_known_of_a_group_that_may_join_nothing_is_not_exact():
    tables = {
        "a": pa.table(
            {"k": np.where(np.arange(800) % 6 == 5, 900, RNG.integers(0, 50, 800)), "g": np.arange(800) % 6}
        ),
        "b": pa.table({"k": RNG.integers(0, 50, 800)}),
    }
    sql = "SELECT APPROXIMATE a.g, COUNT_IF(a.g = 1) n FROM a JOIN b ON a.k = b.k GROUP BY a.g"
    found = MemoryRun.of(
        f"{sql} OPTIONS (buckets = 64, sparse = false)",
        MemoryBackend(MemoryTables(tables)),
        Settings(error=None),
    ).answer()
    cells = dict(found.rows)
    assert 5 in cells  # joins nothing, which counters do not tell
    assert (cells[5].value, cells[5].low, cells[5].high, cells[5].exact) == (0, 0, 0, False)
    assert any("may join nothing" in note for note in found.notes)
    assert not found.exact
