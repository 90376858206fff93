"""`Session.guard`: the size of a join of two DataFrames before it runs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skimql import BudgetExceeded, UnknownName, UnsupportedQuery

pytestmark = pytest.mark.spark


@pytest.fixture
def frames(spark):
    left = spark.createDataFrame(pa.table({"k": [1, 1, 2, None], "g": [1, 2, 1, 1]}))
    right = spark.createDataFrame(pa.table({"K": [1, 1, 3], "h": [1, 2, 1]}))
    return left, right


@pytest.mark.parametrize(
    ("on", "rows"),
    [("k", 4), (["k"], 4), ([("g", "h")], 7), ([("k", "K"), ("g", "h")], 2)],
)
def test_the_rows_of_small_joins_are_exact(session, frames, on, rows):
    answer = session.guard(*frames, on=on)
    assert (answer.low, answer.value, answer.high) == (rows, rows, rows)
    assert len(session.spark.catalog.listTables()) == 0


def test_too_many_rows_are_refused(session, frames):
    assert session.guard(*frames, on="k", most=4).value == 4
    with pytest.raises(BudgetExceeded, match="the join would have 4 rows, more than 3"):
        session.guard(*frames, on="k", most=3)
    assert len(session.spark.catalog.listTables()) == 0


def test_keys_are_names_of_columns(session, frames):
    with pytest.raises(UnknownName, match="no column h"):
        session.guard(*frames, on="h")
    with pytest.raises(UnsupportedQuery, match="guarded on columns"):
        session.guard(*frames, on=[])
