"""Settings of Spark's that change what a text means are followed, or refused, and are part of what is kept."""

from __future__ import annotations

import contextlib

import pytest

from skimql import Session, UnsupportedQuery
from skimql.engine.sources.settings_followed import meaning_of, refuse_not_followed
from skimql.parser.lexing import identifiers, with_quoted_names


@contextlib.contextmanager
def having(spark, **settings):
    names = {f"spark.sql.{name.replace('__', '.')}": value for name, value in settings.items()}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


ESCAPED = {"parser__escapedStringLiterals": "true"}
QUOTED = {"ansi__doubleQuotedIdentifiers": "true"}


@pytest.fixture
def pair(session, spark):
    session.table("a", spark.sql("SELECT id AS k, concat('v', id % 10) AS s FROM range(100)"))
    session.table("b", spark.sql("SELECT id AS k FROM range(100)"))
    return session


def test_double_quotes_are_read_as_spark_reads_them(pair, spark):
    where = """SELECT APPROXIMATE COUNT(*) AS "my n" FROM "a" x JOIN b y ON x."k" = y.k WHERE "s" = 'v3'"""
    with having(spark, **QUOTED):
        answer = pair.sql(where)
        assert (answer.columns, answer.value) == (("my n",), 10)
        assert pair.compare(where).compared[0][0] == 10
        assert pair.sql(where.replace("SELECT APPROX", "EXPLAIN SELECT APPROX")).value
        pair.sql("""CREATE SKETCH sa ON a ("k") WHERE "s" = 'v3'""")
        assert "sa" in str(pair.sql(where).notes)
    with having(spark, **QUOTED, ansi__enabled="false"):
        assert (
            pair.sql("""SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k WHERE s = "v3" """).value == 10
        )
    assert pair.sql("""SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k WHERE s = "v3" """).value == 10


def test_a_sketch_made_under_other_settings_answers_nothing(pair, spark, tmp_path):
    kept = Session(spark, error=None, catalog=tmp_path)
    kept.table("a", spark.sql("SELECT id AS k, concat('v', id % 10) AS s FROM range(100)"))
    kept.table("b", spark.sql("SELECT id AS k FROM range(100)"))
    kept.sql(r"CREATE SKETCH sa ON a (k) WHERE s RLIKE 'v[0-4]'")
    query = r"SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k WHERE a.s RLIKE 'v[0-4]'"
    assert any("sa" in note for note in kept.sql(query).notes)
    for settings in (
        ESCAPED,
        {"legacy__timeParserPolicy": "LEGACY"},
        {"legacy__sizeOfNull": "true", "ansi__enabled": "false"},
        {"mapKeyDedupPolicy": "LAST_WIN"},
    ):
        with having(spark, **settings):
            answer = kept.sql(query)
            assert answer.value == 50
            assert not any("sa" in note for note in answer.notes), settings
    with having(spark, mapKeyDedupPolicy="EXCEPTION"):
        assert any("sa" in note for note in kept.sql(query).notes)
    with having(spark, **ESCAPED):
        kept.sql("CREATE SKETCH sb ON b (k)")
        assert dict(kept.catalog.entry("sb").head.settings) == {
            "spark.sql.parser.escapedStringLiterals": "true"
        }
        # A process without Spark takes the settings of the last one.
        assert kept.catalog.manifest.settings == kept.catalog.entry("sb").head.settings


def test_what_calls_a_function_of_the_users_is_not_kept(pair, spark):
    """It may be registered anew with another meaning."""
    spark.udf.register("Even", lambda k: k % 2 == 0, "boolean")
    try:
        for statement in (
            "CREATE SKETCH s ON a (k) WHERE even(k)",
            "CREATE SKETCH s ON a (abs(k) CLASS k) WHERE `even` (k)",
        ):
            with pytest.raises(UnsupportedQuery, match=r"(?i)even") as told:
                pair.sql(statement)
            assert told.value.code == "SKIMQL_UNSTABLE"
        pair.sql("SET skimql.cache = true")
        query = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k WHERE even(a.k)"
        assert pair.sql(query).value == 50
        spark.udf.register("even", lambda k: k == 0, "boolean")
        assert pair.sql(query).value == 1
    finally:
        spark.sql("DROP TEMPORARY FUNCTION even")


def test_what_the_parser_does_not_follow_is_refused_with_a_way_out(pair, spark):
    query = r"SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k WHERE a.s RLIKE 'v\\d'"
    assert pair.sql(query).value == 100
    with having(spark, **ESCAPED):
        with pytest.raises(UnsupportedQuery) as told:
            pair.sql(query)
        assert told.value.code == "SKIMQL_SPARK_SETTING"
        assert query[slice(*told.value.span)] == r"'v\\d'"
        assert pair.sql(query.replace("SELECT APPROXIMATE", "EXACT SELECT")).value == 0
    with having(spark, caseSensitive="true"), pytest.raises(UnsupportedQuery) as told:
        pair.sql("SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.K = b.k")
    assert "spark.sql.caseSensitive" in str(told.value)


def test_a_setting_counts_where_it_is_off_its_default(spark):
    assert meaning_of(spark) == ()
    with having(spark, caseSensitive="FALSE", shuffle__partitions="3", legacy__timeParserPolicy="legacy"):
        assert meaning_of(spark) == (("spark.sql.legacy.timeParserPolicy", "legacy"),)
    spark.conf.set("spark.sql.shuffle.partitions", "2")


@pytest.mark.parametrize(
    ("setting", "refused", "taken"),
    [
        (
            ("spark.sql.parser.escapedStringLiterals", "true"),
            [r"s = 'a\'b'", "s = 'it''s'"],
            ["s = 'a'", r"s = r'\d'"],
        ),
        (("spark.sql.groupByOrdinal", "false"), ["SELECT a GROUP BY 1"], ["SELECT a"]),
        (("spark.sql.orderByOrdinal", "false"), ["ORDER  BY 1"], ["GROUP BY 1"]),
        (("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "true"), ["x > 1e3"], ["x > 1000"]),
        (("spark.sql.parser.quotedRegexColumnNames", "true"), ["`a.*`"], ["`a`"]),
        (("spark.sql.legacy.sizeOfNull", "true"), [], ["size(a)"]),
    ],
)
def test_only_statements_with_what_a_setting_changes_are_refused(setting, refused, taken):
    for text in refused:
        with pytest.raises(UnsupportedQuery):
            refuse_not_followed(text, [setting])
    for text in taken:
        refuse_not_followed(text, [setting])


def test_double_quotes_become_backticks_outside_of_text():
    text = """SELECT "a""b", '"x"', `"y"`, "c`d" -- "z\n"""
    assert with_quoted_names(text) == """SELECT `a"b`, '"x"', `"y"`, `c``d` -- "z\n"""


def test_identifiers_are_words_not_parts_of_them():
    found = identifiers("SELECT count(*), `a``b` FROM Orders -- gone\n WHERE s = 'o' /* x */ AND \"q r\" = 1")
    assert {"count", "a`b", "orders", "q r", "s"} <= found
    assert not found & {"o", "gone", "x", "ders"}
    assert "t" in identifiers("SELECT * FROM IDENTIFIER('t')")
