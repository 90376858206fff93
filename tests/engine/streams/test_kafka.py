"""Streams from topics, on Spark."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("confluent_kafka")

from support.kafka import Broker

from skimql import Session
from skimql.engine.streams import kafka
from skimql.errors import StreamError
from skimql.parser.statement import parse_statement


def test_a_topic_is_read_by_partitions_and_offsets(spark, tmp_path):
    broker = Broker()
    servers = broker.options["kafka.bootstrap.servers"]
    broker.send("flows", 0, *(json.dumps({"k": n, "v": 1}) for n in range(5)), "{torn")
    broker.send("flows", 1, *(json.dumps({"k": n, "v": 10}) for n in range(3)), None)
    row = {"id": 1, "v": 2}
    broker.send("orders", 0, json.dumps({"op": "c", "before": None, "after": row}), None,
                json.dumps({"payload": {"op": "u", "before": row, "after": {"id": 1, "v": 5}}}))  # fmt: skip
    session = Session(spark, catalog=tmp_path / "catalog")
    limits = tuple(map(int, spark.version.split(".")[:2])) >= (4, 2)
    session.sql(
        "CREATE STREAM flows (k BIGINT, v BIGINT) FROM KAFKA 'flows'"
        f" OPTIONS (kafka.bootstrap.servers = '{servers}'{', maxOffsetsPerTrigger = 6' * limits})"
    )
    now = "WITH (trigger = 'available now')"
    session.sql(f"CREATE CONTINUOUS VIEW q {now} AS SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM flows")
    assert counted(session, "q") == (8, 35)
    (told,) = session.sql("SHOW STREAMS").records()
    assert told["bad"] == 2
    if limits:
        assert told["batch"] >= 1  # at most six messages each
    found = [
        json.loads(line)
        for file in (tmp_path / "catalog").glob("streams/*/quarantine/*/rows.json")
        for line in file.read_text().splitlines()
    ]
    assert {(r["row"], r["file"], r["offset"]) for r in found} == {
        ("{torn", "flows/0", 5),
        ("", "flows/1", 3),
    }
    broker.send("flows", 1, json.dumps({"k": 9, "v": 100}))
    session.sql("RESUME q")
    assert counted(session, "q") == (9, 135)
    session.sql(
        f"CREATE STREAM orders (id BIGINT, v BIGINT) FROM KAFKA 'orders' OPTIONS ('kafka.bootstrap.servers' = '{servers}')"
        " CHANGES DEBEZIUM"
    )
    session.sql(
        f"CREATE CONTINUOUS VIEW p {now} AS SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM orders"
    )
    assert counted(session, "p") == (1, 5)
    session.close()


def test_a_limit_that_spark_does_not_know_is_refused(spark, tmp_path):
    if tuple(map(int, spark.version.split(".")[:2])) >= (4, 2):
        pytest.skip("it does")
    broker = Broker()
    servers = broker.options["kafka.bootstrap.servers"]
    session = Session(spark, catalog=tmp_path / "catalog")
    session.sql(
        "CREATE STREAM flows (k BIGINT) FROM KAFKA 'flows'"
        f" OPTIONS (kafka.bootstrap.servers = '{servers}', maxOffsetsPerTrigger = 6)"
    )
    with pytest.raises(StreamError, match="does not limit the batches"):
        session.sql(
            "CREATE CONTINUOUS VIEW q WITH (trigger = 'available now') AS SELECT APPROXIMATE COUNT(*) AS n FROM flows"
        )
    session.close()


def counted(session, view):
    (row,) = session.sql(f"SELECT * FROM {view}").records()
    return row["n"], row["s"]


def test_where_nothing_reads_topics_the_error_names_what_to_add(spark, monkeypatch):
    monkeypatch.setattr(kafka, "find_spec", lambda name: None)
    with pytest.raises(StreamError) as fault:
        kafka.source_of(spark)
    assert fault.value.code == "SKIMQL_NO_KAFKA"
    assert f"spark-sql-kafka-0-10_2.13:{spark.version}" in fault.value.hint
    assert "skimql[kafka]" in fault.value.hint


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "the brokers of topic t are not said"),
        ("OPTIONS (kafka.bootstrap.servers = 'h:1', startingOffsets = 'first')", "is no option"),
        ("OPTIONS (kafka.bootstrap.servers = 'h:1', subscribePattern = 'x')", "is no option"),
        (
            "OPTIONS (kafka.bootstrap.servers = 'h:1', kafka.sasl.password = 'x')",
            "keeps no secrets, and kafka.sasl.password",
        ),
    ],
)
def test_options_that_one_source_does_not_know_are_refused(options, said):
    with pytest.raises(StreamError, match=said) as fault:
        kafka.refuse_options(parse_statement(f"CREATE STREAM s (k INT) FROM KAFKA 't' {options}"))
    assert fault.value.code == "SKIMQL_BAD_SETTING"


def test_the_options_of_json_and_of_the_broker_are_taken():
    kafka.refuse_options(
        parse_statement(
            "CREATE STREAM s (k INT) FROM KAFKA 't' OPTIONS ('kafka.bootstrap.servers' = 'h:1',"
            " kafka.security.protocol = 'SSL', timestampFormat = 'yyyy', startingOffsets = 'latest')"
        )
    )
