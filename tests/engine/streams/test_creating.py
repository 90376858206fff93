"""CREATE STREAM and CREATE CONTINUOUS VIEW: what is meant, and what is refused before anything is kept."""

from __future__ import annotations

import pytest

from skimql import Session
from skimql.engine.streams.creating import options_of, statement_of
from skimql.errors import ParseError, SkimqlError, StreamError
from skimql.parser.join_graph import Column, TableSchema
from skimql.parser.sketch import resolve_append
from skimql.parser.statement import parse_statement
from skimql.parser.syntax import AppendSketch

VIEW = "CREATE CONTINUOUS VIEW q WITH ({}) AS SELECT APPROXIMATE COUNT(*) FROM s"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("trigger = '10 Seconds'", {"trigger": "10 seconds"}),
        ("trigger = 'available_now'", {"trigger": "available now"}),
        ("bad_rows = 'fail'", {"bad_rows": "fail"}),
        ("sink = '/Some/where'", {"sink": "/Some/where"}),
    ],
)
def test_what_with_says(said, meant):
    assert options_of(parse_statement(VIEW.format(said))) == meant


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("window = '1 hour'", "SKIMQL_BAD_SETTING"),
        ("watermark = '1 hour'", "SKIMQL_BAD_SETTING"),
        ("sink = 's3://x/y'", "SKIMQL_STREAM_UNSUPPORTED"),
        ("trigger = 'continuous'", "SKIMQL_STREAM_UNSUPPORTED"),
        ("trigger = 'real time'", "SKIMQL_STREAM_UNSUPPORTED"),
        ("trigger = 'soon'", "SKIMQL_BAD_SETTING"),
        ("bad_rows = 'drop'", "SKIMQL_BAD_SETTING"),
        ("colour = 'red'", "SKIMQL_BAD_SETTING"),
    ],
)
def test_what_with_does_not_say(said, code):
    with pytest.raises(StreamError) as fault:
        options_of(parse_statement(VIEW.format(said)))
    assert fault.value.code == code
    assert fault.value.hint


def test_signs_of_a_stream_are_one_of_two():
    with pytest.raises(ParseError, match="exclude each other"):
        parse_statement("CREATE STREAM s (k INT, w INT) FROM JSON 'p' DELETES WHEN k = 1 WEIGHT w")


def test_signs_of_a_dataframe_are_read_as_those_of_a_statement():
    schema = {"a b": TableSchema("a b", (Column("w", "int"), Column("op", "string")))}
    for deletes, weight, times in (
        ("op = 'd'", None, "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"),
        (None, "w % 2", "`w` % 2"),
    ):
        stated = statement_of("a b", deletes, weight)
        place = stated.deletes or stated.weight
        assert stated.sql[place.span.start : place.span.end] == (deletes or weight)
        asked = AppendSketch(
            stated.sql, stated.name, (stated.name,), deletes=stated.deletes, weight=stated.weight
        )
        assert resolve_append(asked, schema).times == times
    with pytest.raises(ParseError, match="exclude each other"):
        statement_of("s", "true", "w")
    assert statement_of("s", changes="Debezium").changes.text == "debezium"
    with pytest.raises(ParseError, match="deletes and changes exclude each other"):
        statement_of("s", "true", changes="delta")
    with pytest.raises(ParseError, match="no change records 'x'"):
        statement_of("s", changes="x")


def test_what_cannot_be_a_stream_or_a_view_is_refused_where_it_stands(spark, tmp_path):
    session = Session(spark, catalog=tmp_path / "catalog")
    folder = tmp_path / "in"
    folder.mkdir()
    whole = f"CREATE STREAM s (k BIGINT, op STRING) FROM PARQUET '{folder}'"
    cases = [
        (whole.replace("BIGINT", "BIGINTEGER"), "SKIMQL_BAD_COLUMNS", "k BIGINTEGER, op STRING"),
        (whole.replace(str(folder), "no/where"), "SKIMQL_NO_SUCH_FILE", "'no/where'"),
        (whole.replace("PARQUET", "KAFKA"), "SKIMQL_BAD_SETTING", f"'{folder}'"),
        (whole.replace("PARQUET", "RATE"), "SKIMQL_BAD_COLUMNS", "k BIGINT, op STRING"),
        (f"{whole} DELETES WHEN o = 'd'", "SKIMQL_UNKNOWN_COLUMN", "o"),
        (f"{whole} WEIGHT op", "SKIMQL_WEIGHT_TYPE", "op"),
    ]
    for text, code, place in cases:
        with pytest.raises(SkimqlError) as fault:
            session.sql(text)
        start, end = fault.value.span
        assert (fault.value.code, text[start:end]) == (code, place)
    with pytest.raises(StreamError) as fault:
        Session(spark).sql(whole)
    assert fault.value.code == "SKIMQL_STREAM_CATALOG"
    session.sql(f"{whole} DELETES WHEN op = 'd'")
    assert session.sql(whole.replace("STREAM", "STREAM IF NOT EXISTS")).notes
    rate = "CREATE STREAM r (timestamp TIMESTAMP, value BIGINT) FROM RATE '' OPTIONS (rowsPerSecond = 10)"
    assert session.sql(rate).records()[0]["format"] == "rate"
    view = "CREATE CONTINUOUS VIEW q AS SELECT APPROXIMATE "
    cases = [
        (whole, "SKIMQL_NAME_TAKEN", "s"),
        ("SELECT APPROXIMATE COUNT(*) FROM s", "SKIMQL_STREAM_ASKED", "s"),
        (f"{view}COUNT(*) FROM s JOIN s t ON s.k = t.kk", "SKIMQL_UNKNOWN_COLUMN", "t.kk"),
        (f"{view}k, COUNT(*) FROM s GROUP BY k", "SKIMQL_STREAM_UNSUPPORTED", None),
        (f"{view}COUNT(*) FROM s WHERE k < unix_timestamp()", "SKIMQL_UNSTABLE", None),
        (view.replace(" q ", " s ") + "COUNT(*) FROM s", "SKIMQL_NAME_TAKEN", "s"),
    ]
    for text, code, place in cases:
        with pytest.raises(SkimqlError) as fault:
            session.sql(text)
        assert fault.value.code == code, text
        if place is not None:
            start, end = fault.value.span
            assert text[start:end] == place
    assert len(session.sql("SHOW QUERIES")) == 0
    assert not spark.streams.active
