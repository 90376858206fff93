"""`spark.sql` with the extension on the run's session: what is ours, where it may stand, once, and what it leaves alone."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from support.extension import enabled, refused
from support.tables import forget_views

import skimql
from skimql.engine.extension import jar
from skimql.engine.extension.enable import disable, enable
from skimql.engine.extension.handler import Handler
from skimql.engine.extension.sessions import Sessions

Q = "SELECT APPROXIMATE COUNT(*) AS n FROM ea JOIN eb ON ea.k = eb.k"
# All of the answer's columns, as `exact`: small tables are run exactly.
ROW = (8, 8.0, 8.0, 1.0, True)


@pytest.fixture(scope="module")
def home(spark, tmp_path_factory):
    spark.sql("SELECT * FROM VALUES (1, 1), (1, 2), (2, 3), (3, 4) AS t(k, x)").createOrReplaceTempView("ea")
    spark.sql(
        "SELECT * FROM VALUES (1, 'e'), (1, 'o'), (2, 'e'), (2, 'o'), (3, 'e'), (3, 'o') AS t(k, g)"
    ).createOrReplaceTempView("eb")
    spark.sql("SET skimql.error = none")
    with enabled(spark, tmp_path_factory.mktemp("jar")):
        yield spark
    spark.sql("RESET skimql.error")
    forget_views(spark)


def rows(spark, text, **options):
    return [tuple(r) for r in spark.sql(text, **options).collect()]


def test_an_approximate_select_is_answered_with_its_interval(home):
    frame = home.sql(Q)
    assert frame.columns == ["n", "n_low", "n_high", "confidence", "certified"]
    assert [tuple(r) for r in frame.collect()] == [ROW]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"SELECT q.n + one AS m FROM ({Q}) q, (SELECT 1 AS one) o", [(9,)]),
        (f"WITH c AS ({Q}) SELECT n FROM c WHERE n > 3", [(8,)]),
        (f"SELECT k FROM ea WHERE k * 4 < ({Q}) ORDER BY k", [(1,), (1,)]),
        (f"({Q}) UNION ALL (SELECT 1, 1.0D, 1.0D, 1.0D, true) ORDER BY n", [(1, 1.0, 1.0, 1.0, True), ROW]),
        (f"EXECUTE IMMEDIATE '{Q}'", [ROW]),
        (f"SELECT n FROM skimql_answer('{Q}')", [(8,)]),
        ("SELECT APPROXIMATE g, COUNT(*) AS n FROM ea JOIN eb ON ea.k = eb.k GROUP BY g ORDER BY g", [("e", 4, 4.0, 4.0, 1.0, True), ("o", 4, 4.0, 4.0, 1.0, True)]),
        ("EXACT SELECT COUNT(*) AS n FROM ea JOIN eb ON ea.k = eb.k", [(8,)]),
    ],
)  # fmt: skip
def test_it_stands_wherever_a_query_may(home, text, expected):
    assert rows(home, text) == expected


def test_views_are_answered_anew_tables_are_filled_once(home):
    home.sql(f"CREATE OR REPLACE TEMP VIEW ev AS {Q} WHERE g = 'e'")
    assert rows(home, "SELECT n FROM ev") == [(4,)]
    home.sql("CREATE TABLE ext_t (n BIGINT) USING parquet")
    try:
        home.sql(f"INSERT INTO ext_t {Q}")
        assert rows(home, "SELECT * FROM ext_t") == [(8,)]
    finally:
        home.sql("DROP TABLE ext_t")
    before = home.table("eb")
    try:
        home.sql("SELECT * FROM VALUES (1, 'e') AS t(k, g)").createOrReplaceTempView("eb")
        assert rows(home, "SELECT n FROM ev") == [(2,)]
    finally:
        before.createOrReplaceTempView("eb")


def test_a_view_that_lasts_is_read_in_its_own_database(home):
    home.sql("CREATE DATABASE ext_db")
    try:
        home.sql("CREATE TABLE ext_db.pa USING parquet AS SELECT * FROM ea")
        home.sql("USE ext_db")
        home.sql("CREATE VIEW pv AS SELECT APPROXIMATE COUNT(*) AS n FROM pa x JOIN pa y ON x.k = y.k")
        home.sql("USE default")
        assert rows(home, "SELECT n FROM ext_db.pv") == [(6,)]
        assert refused(home, f"CREATE VIEW ext_db.w AS {Q}")[1] == "SKIMQL_TEMPORARY_IN_VIEW"
    finally:
        home.sql("USE default")
        home.sql("DROP DATABASE ext_db CASCADE")


def test_parameters_have_their_values(home):
    assert rows(home, f"{Q} WHERE x <= :most AND g = :which", args={"most": 1, "which": "e"})[0][0] == 1
    assert rows(home, f"SELECT n, ? AS two FROM ({Q} WHERE x <= ? CONFIDENCE ?)", args=[2, 1, 0.9]) == [
        (2, 2)
    ]
    assert refused(home, f"CREATE TEMP VIEW ew AS {Q} WHERE x < :n", args={"n": 1})[1] == "SKIMQL_PARAMETERS"


@pytest.mark.parametrize(
    ("text", "kind", "condition", "place"),
    [
        ("SELECT APPROXIMATE COUNT(*) FROM ea JOIN eb ON ea.k < eb.k", "AnalysisException", "SKIMQL_NON_EQUI_JOIN", (1, 47)),
        ("SELECT 1,\n (SELECT APPROXIMATE COUNT(*) FROM ea JOIN eb ON ea.kk = eb.k)", "AnalysisException", "SKIMQL_UNKNOWN_COLUMN", (2, 49)),
        ("CREATE SKETCH s ON", "ParseException", "SKIMQL_PARSE_ERROR", (1, 18)),
        ("SELECT 1 UNION ALL SELECT * FROM (SELECT 1 UNION SELECT APPROXIMATE COUNT(*) FROM ea)", "AnalysisException", "SKIMQL_INNER_APPROXIMATE", (1, 34)),
        ("WITH ea AS (SELECT 1 AS k) SELECT * FROM ea, (SELECT APPROXIMATE COUNT(*) FROM ea JOIN eb USING (k))", "AnalysisException", "SKIMQL_INNER_APPROXIMATE", (1, 79)),
        ("SELECT * FROM skimql_answer('CREATE SKETCH s ON ea (k)')", "AnalysisException", "SKIMQL_NOT_AN_ANSWER", None),
        ("SELECT n FROM skimql_answer(1 + 1)", "AnalysisException", "SKIMQL_ASKED_LATE", None),
    ],
)  # fmt: skip
def test_what_is_refused_is_an_error_of_sparks_with_our_words(home, text, kind, condition, place):
    found = refused(home, text)
    assert found[:2] == (kind, condition)
    assert "Traceback" not in found[2]
    assert place is None or found[3:] == place


def test_it_stands_in_expressions_of_dataframes(home):
    assert home.table("ea").where(f"k * 4 < ({Q})").count() == 2
    with pytest.raises(Exception, match="SKIMQL_NON_EQUI_JOIN"):
        home.table("ea").where(f"k < ({Q.replace('=', '<')})").count()


def test_in_a_script_too_and_what_spark_refuses_is_shown_as_it_was_written(home):
    script = "BEGIN FOR r AS SELECT APPROXIMATE COUNT(*) AS n FROM ea JOIN eb USING (k) DO {}; END FOR; END"
    assert rows(home, script.format("SELECT r.n + 1")) == [(ROW[0] + 1,)]
    # Spark asks for the SQLSTATE there.
    found = refused(home, script.format("SELECT APPROXIMATE COUNT(*) FROM ea JOIN eb ON ea.k < eb.k"))
    assert found[:2] == ("AnalysisException", "SKIMQL_NON_EQUI_JOIN")
    home.sql("DECLARE OR REPLACE VARIABLE most INT = 1")
    for text in (f"{Q} WHERE x <= most", f"BEGIN DECLARE least INT = 1; {Q} WHERE x >= least; END"):
        found = refused(home, text)
        assert found[1] == "SKIMQL_UNKNOWN_COLUMN"
        assert "USING " in found[2]
    home.sql("DROP TEMPORARY VARIABLE most")
    found = refused(home, f"SELECT n,, FROM ({Q}) q")
    assert found[:2] == ("ParseException", "PARSE_SYNTAX_ERROR")
    assert Q in found[2]
    assert "__skimql" not in found[2]


def test_a_statement_runs_once(home):
    jobs = home.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    before = jobs()
    frame = home.sql(Q)
    asked = jobs()
    assert asked > before
    frame.explain(mode="simple")
    assert [tuple(r) for r in frame.collect()] == [ROW]
    assert frame.schema.names[0] == "n"
    assert jobs() == asked
    # Neither does looking at a plan, nor making a view.
    home.sql(f"EXPLAIN SELECT * FROM ({Q})")
    home.sql(f"CREATE OR REPLACE TEMP VIEW ex AS {Q}")
    assert jobs() == asked


def test_statements_about_sketches_run_when_they_are_given(home):
    home.sql("CREATE SKETCH es ON ea (k)")
    try:
        assert rows(home, "SHOW SKETCHES")[0][:3] == ("es", "ea", "k")
        assert ("sketch", "es") in rows(home, "DESCRIBE SKETCH es")
        assert rows(home, "REFRESH SKETCH es")
    finally:
        home.sql("DROP SKETCH es")
    assert rows(home, "SHOW SKETCHES") == []


def test_other_sessions_have_their_own_tables_and_settings(home):
    other = home.newSession()
    other.sql("SELECT 1 AS k, 1 AS x").createOrReplaceTempView("ea")
    other.sql("SELECT 1 AS k, 'e' AS g").createOrReplaceTempView("eb")
    other.sql("SET skimql.bounds = none")
    home.sql("CREATE SKETCH es ON ea (k)")
    try:
        assert rows(other, "SHOW SKETCHES") == []
        assert rows(other, Q) == [(1,)]
    finally:
        home.sql("DROP SKETCH es")
    other.sql("SET skimql.error = 7")
    assert refused(other, Q)[1] == "SKIMQL_BAD_SETTING"
    assert rows(home, Q) == [ROW]


def test_threads_ask_at_once(home):
    found = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: rows(home, f"{Q} WHERE x <= {n}")[0][0]}))
        for n in range(1, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert found == {1: 2, 2: 4, 3: 6}


def test_switched_off_it_leaves_nothing(home, tmp_path):
    disable(home)
    try:
        assert refused(home, Q)[1] == "PARSE_SYNTAX_ERROR"
        assert refused(home, "DESCRIBE SKETCH es")[1] == "TABLE_OR_VIEW_NOT_FOUND"
        assert refused(home, f"SELECT * FROM skimql_answer('{Q}')")[1] == "UNRESOLVABLE_TABLE_VALUED_FUNCTION"
        assert type(home._jsparkSession.sessionState().sqlParser().toString()) is str
        disable(home)
    finally:
        enable(home)
    assert rows(home, Q) == [ROW]


def test_switching_on_and_off_grows_nothing(home):
    def size():
        pool = home._sc._gateway.gateway_property.pool
        return threading.active_count(), len(pool), home._jvm.java.lang.Thread.activeCount()

    rows(home, "SHOW SKETCHES")
    before = size()
    for _ in range(5):
        disable(home)
        enable(home)
        rows(home, "SHOW SKETCHES")
    assert size() <= tuple(n + 1 for n in before)


def test_a_python_that_fails_is_told_and_spark_goes_on(home, monkeypatch):
    monkeypatch.setattr(Handler, "apply", lambda *_: 1 / 0)
    assert refused(home, Q)[1] == "SKIMQL_PYTHON_GONE"
    assert refused(home, "SELEC 1")[1] == "PARSE_SYNTAX_ERROR"
    assert rows(home, "SELECT 1") == [(1,)]
    monkeypatch.undo()
    assert rows(home, Q) == [ROW]


def test_a_callback_server_that_is_shut_down_is_told_and_started_again(home):
    rows(home, Q)
    ending = threading.Thread(target=home._sc._gateway.shutdown_callback_server, daemon=True)
    ending.start()
    ending.join(10)
    assert not ending.is_alive()
    assert refused(home, Q)[1] == "SKIMQL_PYTHON_GONE"
    assert refused(home, "SELEC 1")[1] == "PARSE_SYNTAX_ERROR"
    assert rows(home, "SELECT 1") == [(1,)]
    enable(home)
    assert rows(home, Q) == [ROW]


def test_tables_become_views_of_the_session(home, tmp_path):
    home.range(3).write.parquet(str(tmp_path / "r"))
    session = enable(home, tables={"er": str(tmp_path / "r"), "es2": home.range(2)}, bounds=False)
    try:
        assert rows(home, "SELECT COUNT(*) FROM er JOIN es2 USING (id)") == [(2,)]
        assert rows(home, "SELECT APPROXIMATE COUNT(*) FROM er JOIN es2 USING (id)") == [(2,)]
        assert session.sql("SELECT APPROXIMATE COUNT(*) FROM er JOIN es2 USING (id)").value == 2
    finally:
        enable(home)


def test_without_a_jar_it_says_how_to_get_one(spark, monkeypatch):
    from skimql.engine.extension import enable as module

    monkeypatch.setattr(module, "_is_loaded", lambda *_: False)
    monkeypatch.setattr(jar, "find", lambda: None)
    with pytest.raises(skimql.EnvironmentFault) as fault:
        enable(spark)
    assert fault.value.code == "SKIMQL_NO_JAR"
    assert "openjdk-17-jdk-headless" in fault.value.hint
    monkeypatch.undo()


def test_a_jar_of_another_version_is_refused(home, monkeypatch):
    monkeypatch.setattr(jar, "version", lambda *_: "another")
    with pytest.raises(skimql.EnvironmentFault) as fault:
        enable(home)
    assert fault.value.code == "SKIMQL_OTHER_JAR"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("skimql.confidence", "0.9"),
    ],
)
def test_settings_come_with_the_statement_as_python_would_find_them(home, monkeypatch, name, value):
    told = []
    asked = Sessions.asked

    def asking(self, *arguments):
        session = asked(self, *arguments)
        own = session.environment
        told.append(
            (session.told, session.settings, own.circumstances(), replace(own, told=None).circumstances())
        )
        return session

    monkeypatch.setattr(Sessions, "asked", asking)
    before = home.conf.get(name, None)
    home.conf.set(name, value)
    try:
        rows(home, Q)
    finally:
        home.conf.set(name, before) if before is not None else home.conf.unset(name)
    rows(home, Q)
    (explicit, settings, found, other), (_, later_settings, later, _) = told
    assert explicit[name] == value
    assert found == other
    assert (found, settings) != (later, later_settings)
