"""Every other statement of the dialect, and the way back from statement to text."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.unparse import unparse

from skimql.errors import ParseError
from skimql.parser.join_graph import Accuracy, Span
from skimql.parser.statement import parse_statement, split_statements
from skimql.parser.syntax import (
    BEHAVIORS,
    METHODS,
    AppendSketch,
    ApproximateSelect,
    ControlQuery,
    CreateContinuousView,
    CreateSketch,
    CreateSketches,
    CreateStream,
    DescribeSketch,
    DescribeStream,
    DropSketch,
    DropStream,
    ExplainSketches,
    ExportSketch,
    ImportSketch,
    Part,
    PassThrough,
    RefreshSketch,
    SetOption,
    ShowQueries,
    ShowSketches,
    ShowStreams,
    SketchKey,
    StreamColumn,
)


def test_create_sketch_with_everything():
    text = (
        "CREATE OR REPLACE SKETCH IF NOT EXISTS s ON main.orders (custkey CLASS c, orderkey + f(1, 2)) "
        "FOR SUM(total * 2) WHERE status = 'F' AND size > 3 USING hash SIZE 64 KB OPTIONS (rows = 3);"
    )
    sketch = parse_statement(text)
    assert sketch == CreateSketch(
        text,
        Part("s"),
        (Part("main"), Part("orders")),
        (SketchKey(Part("custkey"), Part("c")), SketchKey(Part("orderkey + f(1, 2)"))),
        Part("total * 2"),
        Part("status = 'F' AND size > 3"),
        "hash",
        65536,
        Accuracy(),
        {"rows": "3"},
        or_replace=True,
        if_not_exists=True,
    )
    start, end = sketch.condition.span
    assert text[start:end] == "status = 'F' AND size > 3"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (
            "create sketch s on orders (k) error within 5% confidence 95%",
            CreateSketch(
                "", Part("s"), (Part("orders"),), (SketchKey(Part("k")),), accuracy=Accuracy(0.05, 0.95)
            ),
        ),
        (
            "CREATE SKETCH `a b` ON t (class, `size` CLASS `c``d`) WHERE k IN (SELECT k FROM u WHERE v = 1)",
            CreateSketch(
                "",
                Part("a b"),
                (Part("t"),),
                (SketchKey(Part("class")), SketchKey(Part("`size`"), Part("c`d"))),
                condition=Part("k IN (SELECT k FROM u WHERE v = 1)"),
            ),
        ),
        (
            "CREATE SKETCHES w FOR QUERIES ( SELECT COUNT(*) FROM a, b WHERE a.k=b.k; SELECT ';' ; ) "
            "SIZE 16 MB MINIMIZE AVERAGE ERROR PARTITION INTO 4",
            CreateSketches(
                "",
                Part("w"),
                (Part("SELECT COUNT(*) FROM a, b WHERE a.k=b.k"), Part("SELECT ';'")),
                16 << 20,
                "average",
                4,
            ),
        ),
        (
            "APPEND SKETCH s FROM orders WHERE day = '2026-11-27'",
            AppendSketch("", Part("s"), (Part("orders"),), condition=Part("day = '2026-11-27'")),
        ),
        ("APPEND SKETCH s FROM '/data/day=1'", AppendSketch("", Part("s"), path=Part("/data/day=1"))),
        ("REFRESH SKETCH s", RefreshSketch("", Part("s"))),
        ("SHOW SKETCHES", ShowSketches("")),
        ("DESCRIBE SKETCH s", DescribeSketch("", Part("s"))),
        ("desc sketch extended s", DescribeSketch("", Part("s"), extended=True)),
        ("DROP SKETCH IF EXISTS s", DropSketch("", Part("s"), if_exists=True)),
        ("EXPORT SKETCH s TO 'p'", ExportSketch("", Part("s"), Part("p"))),
        ("IMPORT SKETCH s FROM 'it''s'", ImportSketch("", Part("s"), Part("it's"))),
        (
            "IMPORT SKETCH trusted FROM 'p' trusted",
            ImportSketch("", Part("trusted"), Part("p"), trusted=True),
        ),
        ("EXPLAIN SKETCHES w", ExplainSketches("", Part("w"))),
        (
            "CREATE STREAM flows (src BIGINT, v DECIMAL(10,2), op STRUCT<a: INT, b: STRING>) FROM JSON 'p' "
            "OPTIONS (maxFilesPerTrigger = 1) DELETES WHEN op.a = 'd'",
            CreateStream(
                "",
                Part("flows"),
                (
                    StreamColumn(Part("src"), Part("BIGINT")),
                    StreamColumn(Part("v"), Part("DECIMAL(10,2)")),
                    StreamColumn(Part("op"), Part("STRUCT<a: INT, b: STRING>")),
                ),
                "json",
                Part("p"),
                {"maxfilespertrigger": "1"},
                Part("op.a = 'd'"),
            ),
        ),
        (
            "CREATE CONTINUOUS VIEW q WITH (window = '1 hour', time = ts) AS SELECT APPROXIMATE COUNT(*) "
            "FROM flows f JOIN hosts h ON f.src = h.ip WHERE f.x = 'on' ERROR WITHIN 5%",
            CreateContinuousView(
                "",
                Part("q"),
                Part(
                    "SELECT APPROXIMATE COUNT(*) FROM flows f JOIN hosts h ON f.src = h.ip WHERE f.x = 'on' "
                    "ERROR WITHIN 5%"
                ),
                {"window": "1 hour", "time": "ts"},
            ),
        ),
        (
            "CREATE OR REPLACE STREAM IF NOT EXISTS s (k INT, w INT) FROM CSV 'p' WEIGHT 2 * w",
            CreateStream(
                "",
                Part("s"),
                (StreamColumn(Part("k"), Part("INT")), StreamColumn(Part("w"), Part("INT"))),
                "csv",
                Part("p"),
                weight=Part("2 * w"),
                or_replace=True,
                if_not_exists=True,
            ),
        ),
        ("SHOW STREAMS", ShowStreams("")),
        ("DESC STREAM s", DescribeStream("", Part("s"))),
        ("DROP STREAM IF EXISTS s", DropStream("", Part("s"), if_exists=True)),
        ("SHOW QUERIES EXTENDED", ShowQueries("", extended=True)),
        ("PAUSE q", ControlQuery("", "pause", Part("q"))),
        ("RESUME q", ControlQuery("", "resume", Part("q"))),
        ("TERMINATE `q r`", ControlQuery("", "terminate", Part("q r"))),
    ],
)
def test_every_statement_and_the_way_back(text, statement):
    assert parse_statement(text) == statement
    assert parse_statement(text + " ; -- done") == statement
    assert parse_statement(unparse(statement)) == statement


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE sketch (k INT)",
        "CREATE OR REPLACE TEMP VIEW q AS SELECT 1",
        "SHOW TABLES",
        "DESCRIBE sketches",
        "DROP TABLE sketch",
        "REFRESH TABLE t",
        "EXPLAIN SELECT 1",
    ],
)
def test_sparks_own_statements_stay_sparks(text):
    assert parse_statement(text) == PassThrough(text)


def test_the_semicolons_between_queries_do_not_split_a_script():
    script = (
        "CREATE SKETCHES w FOR QUERIES (SELECT 1; SELECT (2); /* ; */) SIZE 1 MB MINIMIZE MAX ERROR; SELECT 3"
    )
    assert len(split_statements(script)) == 2


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("CREATE SKETCH s orders (k)", "orders"),
        ("CREATE SKETCH s ON orders", " "),
        ("CREATE SKETCH s ON orders (k) SIZE 64 KB SIZE 1 MB", "SIZE 1 MB"),
        ("CREATE SKETCH s ON orders (k) SIZE 64 KB ERROR WITHIN 5%", "ERROR WITHIN 5%"),
        ("CREATE SKETCH s ON orders (k) USING hush", "hush"),
        ("CREATE SKETCH s ON orders (k) SIZE 0 KB", "SIZE 0 KB"),
        ("CREATE SKETCHES w FOR QUERIES (SELECT 1) SIZE 1 MB MINIMIZE MEAN ERROR", "MEAN"),
        ("CREATE SKETCHES w FOR QUERIES (SELECT 1) SIZE 1 MB", "B"),
        ("CREATE SKETCHES w FOR QUERIES (SELECT 1; SELECT 2", "("),
        ("CREATE STREAM s (k INT) FROM AVRO 'p'", "AVRO"),
        ("CREATE STREAM s (k INT) FROM JSON 'p' WEIGHT k CHANGES DELTA", "DELTA"),
        ("CREATE STREAM s (k INT) FROM JSON 'p' CHANGES OTHER", "CHANGES"),
        ("CREATE STREAM s (k INT) FROM JSON 'p' DEDUP (k)", " "),
        ("DROP SKETCH", " "),
        ("EXPORT SKETCH s FROM 'p'", "FROM"),
        ("PAUSE q r", "r"),
    ],
)
def test_mistakes_are_shown_where_they_stand(text, marked):
    with pytest.raises(ParseError) as caught:
        parse_statement(text)
    start, end = caught.value.span
    assert (text + " ")[start:end] == marked, str(caught.value)
    assert caught.value.hint


# Statements from random parts: names that need quotes, texts with quotes, numbers at the ends of their range.
NAMES = st.text(alphabet="ab `é_1", min_size=1, max_size=6).filter(lambda s: s.strip() == s and s)
PARTS = NAMES.map(Part)
TEXTS = st.text(alphabet="ab '\"\\;-/*\n", max_size=8)
SHARES = st.floats(0.0001, 0.9999)
ACCURACY = st.builds(Accuracy, st.none() | SHARES, st.none() | SHARES, st.none() | st.sampled_from(BEHAVIORS))
OPTIONS = st.dictionaries(st.sampled_from(["rows", "buckets", "path"]), TEXTS, max_size=3)
SQL = st.sampled_from(["k", "a + f(b, 'x)')", "`my col`", "total * (1 - discount)", "CAST(k AS BIGINT)"]).map(
    Part
)
WHERE = st.none() | st.sampled_from(["a = 'F'", "size > 3 AND b IN (1, 2)", "`q` IS NULL"]).map(Part)
QUERY = st.sampled_from(["SELECT COUNT(*) FROM a, b WHERE a.k = b.k", "SELECT ';' FROM t WHERE size > 1"])
KEYS = st.lists(st.builds(SketchKey, SQL, st.none() | PARTS), min_size=1, max_size=3).map(tuple)
TABLES = st.lists(PARTS, min_size=1, max_size=3).map(tuple)
EMPTY = st.just("")

STATEMENTS = st.one_of(
    st.builds(
        CreateSketch,
        EMPTY,
        PARTS,
        TABLES,
        KEYS,
        st.none() | SQL,
        WHERE,
        st.none() | st.sampled_from(METHODS),
        st.none() | st.integers(1, 2**50),
        st.just(Accuracy()),
        OPTIONS,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        CreateSketches,
        EMPTY,
        PARTS,
        st.lists(QUERY.map(Part), min_size=1, max_size=3).map(tuple),
        st.integers(1, 2**50),
        st.sampled_from(["average", "max"]),
        st.integers(1, 9),
        st.booleans(),
    ),
    st.builds(AppendSketch, EMPTY, PARTS, TABLES, st.none(), WHERE),
    st.builds(AppendSketch, EMPTY, PARTS, st.just(()), TEXTS.map(Part), WHERE),
    st.builds(DescribeSketch, EMPTY, PARTS, st.booleans()),
    st.builds(DropSketch, EMPTY, PARTS, st.booleans()),
    st.builds(ExportSketch, EMPTY, PARTS, TEXTS.map(Part)),
    st.builds(ControlQuery, EMPTY, st.sampled_from(["pause", "resume", "terminate"]), PARTS),
    st.builds(
        CreateStream,
        EMPTY,
        PARTS,
        st.lists(
            st.builds(
                StreamColumn, PARTS, st.sampled_from(["INT", "DECIMAL(10, 2)", "ARRAY<INT>"]).map(Part)
            ),
            min_size=1,
            max_size=3,
        ).map(tuple),
        st.sampled_from(["json", "csv", "parquet", "kafka", "rate"]),
        TEXTS.map(Part),
        OPTIONS,
        WHERE,
        st.none(),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(DropStream, EMPTY, PARTS, st.booleans()),
    st.builds(DescribeStream, EMPTY, PARTS),
    st.builds(CreateContinuousView, EMPTY, PARTS, QUERY.map(Part), OPTIONS, st.booleans()),
    st.builds(SetOption, EMPTY, st.sampled_from(["skimql.error", "skimql.bounds"]), TEXTS),
    st.builds(
        ApproximateSelect,
        EMPTY,
        QUERY,
        ACCURACY,
        st.none() | st.sampled_from(METHODS),
        OPTIONS,
        st.none() | st.integers(0, 2**63 - 1),
        st.none() | st.integers(1, 2**50),
    ),
)


def said(statement):
    """What a statement says: the blanks that stand for our words in a SELECT left out."""
    if isinstance(statement, ApproximateSelect):
        return dataclasses.replace(statement, select_sql=" ".join(statement.select_sql.split()))
    return statement


@settings(deadline=None)
@given(STATEMENTS)
def test_unparsing_and_parsing_gives_the_same_statement(statement):
    text = unparse(statement)
    again = parse_statement(text)
    assert said(again) == said(statement), text
    assert unparse(again).split() == text.split()


def test_spans_do_not_count_in_equality():
    assert Part("a", Span(1, 2)) == Part("a", Span(3, 4))


def test_the_queries_of_a_workload_may_stand_in_parentheses_of_their_own():
    """Clients that cut scripts at semicolons leave none there."""
    by_semicolons = parse_statement(
        "CREATE SKETCHES w FOR QUERIES (SELECT 1 AS a, f(2); SELECT 2) SIZE 1 MB MINIMIZE MAX ERROR"
    )
    by_commas = parse_statement(
        "CREATE SKETCHES w FOR QUERIES ((SELECT 1 AS a, f(2)), (SELECT 2)) SIZE 1 MB MINIMIZE MAX ERROR"
    )
    assert (
        [q.text for q in by_commas.queries]
        == [q.text for q in by_semicolons.queries]
        == ["SELECT 1 AS a, f(2)", "SELECT 2"]
    )
    one = parse_statement("CREATE SKETCHES w FOR QUERIES (SELECT a, b) SIZE 1 MB MINIMIZE MAX ERROR")
    assert [q.text for q in one.queries] == ["SELECT a, b"]
