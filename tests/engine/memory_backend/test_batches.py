"""Batches without Spark: events have their time and groups beside them, tables send what they have."""

from support.memory import arrow

from skimql.engine.execution.partial_aggregate import group_column
from skimql.engine.memory_backend.batches import cut_columns
from skimql.engine.streams.cells import Cut, Split
from skimql.engine.streams.windows import Windows


def test_every_cut_is_a_column_of_the_time_and_the_groups_of_an_event():
    events = arrow("k BIGINT, ts BIGINT", [(1, 10), (2, 20), (None, 30)])
    splits = Split(Windows("ts", 10, 10, 0, 1)), Split(None, ("`k` + 1",))
    found = cut_columns(events, tuple(Cut(split) for split in splits))
    assert found.select(["k", "ts"]) == events
    assert found[group_column(0)].to_pylist() == [{"c0": 10}, {"c0": 20}, {"c0": 30}]
    assert found[group_column(1)].to_pylist() == [{"c0": 2}, {"c0": 3}, {"c0": None}]
