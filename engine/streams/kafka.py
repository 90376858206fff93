"""Streams from topics of Kafka: Spark's own source where its jar is, else ours over `confluent-kafka`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ...errors import StreamError
from ...parser.fragment import quote_name
from ...parser.syntax import CreateStream
from ..catalog.secrets import split_options
from ..catalog.streams import DEBEZIUM, StoredStream
from ..materialized.names import place_of
from .changes import BAD_ROW, FILE, OFFSET, REASON, json_options, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KAFKA, SERVERS = "kafka", "kafka.bootstrap.servers"
_OPTIONS = ("startingoffsets", "maxoffsetspertrigger")


def refuse_options(statement: CreateStream) -> None:
    """Refuse a topic without its brokers, and options that one of the two sources does not know.

    Raises
    ------
    StreamError
        ``SKIMQL_BAD_SETTING``.
    """
    given = {n.lower(): v for n, v in statement.options.items()}
    place = place_of(statement.path)
    wanted = f"OPTIONS ('{SERVERS}' = 'host:9092')"
    if SERVERS not in given:
        raise StreamError(
            f"the brokers of topic {statement.path.text} are not said",
            "SKIMQL_BAD_SETTING",
            statement.sql,
            place,
            wanted,
        )
    _, secret = split_options(given)
    if secret:
        raise StreamError(
            f"the catalog keeps no secrets, and {', '.join(secret)} may be one",
            "SKIMQL_BAD_SETTING",
            statement.sql,
            place,
            f"session.stream({statement.name.text!r}, spark.readStream.format('kafka').options(...).load() and its"
            " columns)",
        )
    for name, value in given.items():
        known = name.startswith("kafka.") or name in _OPTIONS or json_options({name: value})
        if not known or (name == _OPTIONS[0] and value not in ("earliest", "latest")):
            raise StreamError(
                f"{name} = {value!r} is no option of a stream from Kafka",
                "SKIMQL_BAD_SETTING",
                statement.sql,
                place,
                f"{wanted}, startingOffsets = 'earliest' or 'latest', maxOffsetsPerTrigger = 100000",
            )


def source_of(spark: SparkSession) -> str:
    """The name of the source of Spark that reads topics here.

    Raises
    ------
    StreamError
        ``SKIMQL_NO_KAFKA`` where there is none.
    """
    from ..spark.session import SPARK_FAULTS

    try:
        spark.readStream.format(KAFKA).option(SERVERS, "none:1").option("subscribe", "none").load()
        return KAFKA
    except SPARK_FAULTS:
        pass
    if find_spec("confluent_kafka") is None:
        raise StreamError(
            "Spark has no source for Kafka here",
            "SKIMQL_NO_KAFKA",
            hint=f"start Spark with spark.jars.packages = {_jar(spark)}; or pip install 'skimql[kafka]'",
        )
    from .kafka_source import NAME, KafkaSource

    spark.dataSource.register(KafkaSource)
    return NAME


def _limits() -> bool:
    from .kafka_source import LIMITS

    return LIMITS


def _jar(spark: SparkSession) -> str:
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"


def messages(spark: SparkSession, stream: StoredStream) -> DataFrame:
    """The messages of a topic as rows of the stream, or as change records in one text."""
    source, mine = source_of(spark), json_options(stream.options)
    if source != KAFKA and "maxoffsetspertrigger" in stream.options and not _limits():
        raise StreamError(
            f"Spark {spark.version} does not limit the batches of a source in Python",
            "SKIMQL_BAD_SETTING",
            hint=f"Spark 4.2, its own source for Kafka ({_jar(spark)}), or no maxOffsetsPerTrigger",
        )
    options = {"startingoffsets": "earliest", **{n: v for n, v in stream.options.items() if n not in mine}}
    reader = spark.readStream.format(source).options(**options).option("subscribe", stream.source)
    texts = reader.load().selectExpr(
        "CAST(value AS STRING) AS value",
        f"concat(topic, '/', partition) AS {quote_name(FILE)}",
        f"offset AS {quote_name(OFFSET)}",
    )
    return texts if stream.changes == DEBEZIUM else parsed(stream, texts)


def parsed(stream: StoredStream, texts: DataFrame) -> DataFrame:
    """Texts of JSON as rows; what is no object of the columns of the stream is a bad row."""
    bad = quote_name(BAD_ROW)
    told = {**json_options(stream.options), "mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD_ROW}
    options = f"map({', '.join(literal(t) for pair in told.items() for t in pair)})"
    read = texts.selectExpr(
        "*", f"from_json(value, {literal(f'{stream.ddl}, {bad} STRING')}, {options}) AS e"
    )
    empty = "value IS NULL OR trim(value) IN ('', 'null')"
    torn = f"({empty} OR e IS NULL OR e.{bad} IS NOT NULL OR ltrim(value) LIKE '[%')"
    reason = literal("the message is no JSON object of the columns of the stream")
    return read.selectExpr(
        *(f"IF({torn}, NULL, e.{quote_name(c.name)}) AS {quote_name(c.name)}" for c in stream.columns),
        f"IF({torn}, coalesce(value, ''), NULL) AS {bad}",
        f"IF({torn}, {reason}, NULL) AS {quote_name(REASON)}",
        quote_name(FILE),
        quote_name(OFFSET),
    )
