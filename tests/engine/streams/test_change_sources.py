"""Which sources may have change records."""

from __future__ import annotations

import pytest

from skimql.engine.streams.change_sources import columns_read, refuse_table_folder, rows_of_changes
from skimql.errors import StreamError
from skimql.parser.join_graph import Column
from skimql.parser.statement import parse_statement

ID = Column("id", "bigint")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("RATE '' CHANGES DELTA", "RATE has no change records of Delta"),
        ("CSV 'p' CHANGES DEBEZIUM", "CSV has no change records of Debezium"),
        ("JSON 'p' OPTIONS (multiLine = true) CHANGES DEBEZIUM", "one line of JSON"),
        ("CSV 'p' CHANGES DELTA", "column _change_type"),
    ],
)
def test_a_source_that_cannot_have_them_is_refused_where_the_clause_stands(rest, said):
    statement = parse_statement(f"CREATE STREAM s (id BIGINT) FROM {rest}")
    with pytest.raises(StreamError, match=said) as fault:
        columns_read(statement, (ID,))
    start, end = fault.value.span
    assert statement.sql[start:end] in ("DELTA", "DEBEZIUM")


def test_a_change_feed_has_the_kind_of_change_once():
    kind = Column("_change_type", "string")
    statement = parse_statement("CREATE STREAM s (id BIGINT) FROM PARQUET 'p' CHANGES delta")
    assert columns_read(statement, (ID,)) == columns_read(statement, (ID, kind)) == (ID, kind)
    statement = parse_statement("CREATE STREAM s (id BIGINT) FROM PARQUET 'p' CHANGES DEBEZIUM")
    assert columns_read(statement, (ID,)) == (ID,)


@pytest.mark.parametrize("mark", ["_delta_log", ".hoodie"])
def test_files_of_a_table_that_rewrites_them_are_no_stream(tmp_path, mark):
    refuse_table_folder(str(tmp_path), "", None)
    (tmp_path / mark).mkdir()
    with pytest.raises(StreamError) as fault:
        refuse_table_folder(str(tmp_path), "", None)
    assert (fault.value.code, "CHANGES DELTA" in fault.value.hint) == ("SKIMQL_STREAM_OF_TABLE", True)


def test_a_dataframe_has_the_columns_of_its_change_records(spark):
    image = "STRUCT<id: BIGINT, v: STRING>"
    envelope = f"op STRING, before {image}, after {image}"
    for ddl in (envelope, f"schema STRING, payload STRUCT<{envelope}>"):
        assert rows_of_changes("s", spark.createDataFrame([], ddl), "Debezium").columns == ["id", "v"]
    feed = spark.createDataFrame([], "id BIGINT, _change_type STRING")
    assert rows_of_changes("s", feed, "delta") is feed is rows_of_changes("s", feed, None)
    for ddl, kind, said in (
        ("id BIGINT", "delta", "no change feed"),
        ("op STRING, after STRING, before STRING", "debezium", "no Debezium envelopes"),
        (f"op STRING, before STRUCT<id: BIGINT>, after {image}", "debezium", "other columns"),
    ):
        with pytest.raises(StreamError, match=said) as fault:
            rows_of_changes("s", spark.createDataFrame([], ddl), kind)
        assert fault.value.code == "SKIMQL_BAD_COLUMNS"
