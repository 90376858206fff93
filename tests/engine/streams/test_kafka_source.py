"""Topics against the broker that librdkafka carries."""

from __future__ import annotations

import pytest

pytest.importorskip("confluent_kafka")

from support.kafka import Broker

from skimql.engine.streams.kafka_source import Range, TopicReader, shares


@pytest.fixture(scope="module")
def broker():
    return Broker()


@pytest.mark.parametrize(
    ("lags", "most", "taken"),
    [
        ({"0": 5, "1": 1, "2": 9}, 9, {"1": 1, "0": 4, "2": 4}),
        ({"0": 5, "1": 1}, 100, {"1": 1, "0": 5}),
        ({"0": 0, "1": 7}, 3, {"0": 0, "1": 3}),
        ({}, 3, {}),
    ],
)
def test_a_batch_takes_evenly_and_no_more_than_it_may(lags, most, taken):
    assert shares(lags, most) == taken


def values(reader, ranges):
    return {
        r.partition: [v for batch in reader.read(r) for v in batch.column("value").to_pylist()]
        for r in ranges
    }


def test_offsets_of_a_topic_are_read_once_each(broker):
    broker.send("t", 0, "a", "b", "c")
    broker.send("t", 1, None)
    reader = TopicReader({"Subscribe": "t", **broker.options})
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert (start["t"]["0"], end["t"]["0"], end["t"]["1"]) == (0, 3, 1)
    assert values(reader, reader.partitions(start, end)) == {0: [b"a", b"b", b"c"], 1: [None]}
    assert list(reader.partitions(end, end)) == []
    broker.send("t", 0, "d")
    later = reader.latestOffset(end)
    assert values(reader, reader.partitions(end, later)) == {0: [b"d"]}
    # What comes after a run of `available now` has begun waits for the next.
    reader.prepareForTriggerAvailableNow()
    broker.send("t", 0, "e")
    assert reader.latestOffset(end) == later
    assert (
        TopicReader({"subscribe": "t", "startingoffsets": "latest", **broker.options}).initialOffset()["t"][
            "0"
        ]
        == 5
    )


def test_a_limit_is_kept_and_what_is_gone_is_an_error(broker):
    broker.send("u", 0, *map(str, range(9)))
    reader = TopicReader({"subscribe": "u", "maxoffsetspertrigger": "4", **broker.options})
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert sum(end["u"].values()) == 4
    with pytest.raises(ValueError, match="messages are lost, or the topic is another"):
        reader.latestOffset({"u": {"0": 50}}, reader.getDefaultReadLimit())
    with pytest.raises(ValueError, match="there is no topic nowhere"):
        TopicReader({"subscribe": "nowhere", **broker.options}).initialOffset()
    assert Range(0, 2, 3) == Range(0, 2, 3)
