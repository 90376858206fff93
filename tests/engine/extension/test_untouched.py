"""What is Spark's stays Spark's: the same plans, rows, errors and places, with the extension and without."""

from __future__ import annotations

import re

from support.extension import enabled

# Every kind of statement, with our words as names, parameters, scripts and mistakes among them.
STATEMENTS = [
    "SELECT 1", "SELECT 'SELECT APPROXIMATE COUNT(*)' AS t", "SELECT approx FROM ut", "SELECT approx n FROM ut",
    "SELECT approx AS n, sketch FROM ut", "SELECT APPROXIMATE FROM ut", "SELECT approximate.k FROM ut AS approximate",
    "SELECT sketch.k FROM ut sketch", "SELECT error, within FROM (SELECT 1 AS error, 2 AS within)",
    "SELECT /* SELECT APPROXIMATE COUNT(*) */ 1", "SELECT 1 -- ERROR WITHIN 5%", "SELECT approx, COUNT(*) FROM ut GROUP BY approx",
    "SELECT APPROX_COUNT_DISTINCT(k) FROM ut", "SELECT approx_percentile(k, 0.5) FROM ut", "SELECT `approximate` FROM ut",
    "WITH approx AS (SELECT 1 AS n) SELECT n FROM approx", "VALUES (1), (2)", "TABLE ut", "FROM ut SELECT k",
    "SELECT * FROM ut a JOIN ut b USING (k)", "SELECT k FROM ut UNION ALL SELECT approx FROM ut ORDER BY k",
    "SELECT * FROM range(3)", "SELECT exact FROM (SELECT 1 AS exact)", "SELECT estimate rows FROM (SELECT 1 AS estimate)",
    "SELECT (SELECT MAX(k) FROM ut) AS m", "SELECT k FROM ut WHERE k IN (SELECT approx FROM ut)", "SELECT CAST('1' AS INT)::STRING",
    "SHOW TABLES", "SHOW VIEWS", "SHOW CATALOGS", "SHOW COLUMNS IN ut", "DESCRIBE ut", "DESCRIBE ut sketch", "DESCRIBE QUERY SELECT 1",
    "EXPLAIN SELECT k FROM ut", "EXPLAIN EXTENDED SELECT approx n FROM ut", "SET spark.sql.shuffle.partitions", "SET skimql.seed",
    "DECLARE OR REPLACE ext_v = 3", "SELECT ext_v", "SET VAR ext_v = 4", "DROP TEMPORARY VARIABLE ext_v",
    "CREATE OR REPLACE TEMP VIEW sketch AS SELECT 1 AS s", "SELECT * FROM sketch", "DESCRIBE `sketch` s", "DESCRIBE TABLE sketch", "DROP VIEW sketch",
    "REFRESH TABLE ut", "EXECUTE IMMEDIATE 'SELECT 1'", "BEGIN SELECT 1; SELECT 2; END", "CACHE TABLE approx AS SELECT 1", "UNCACHE TABLE approx", "DROP VIEW approx",
    # mistakes
    "SELEC 1", "SELECT FROM WHERE", "SELECT 1 FRM ut x", "SELECT approx FRM ut", "SELECT approx n FRM ut x", "SELECT\n  k,\n  FROM ut",
    "SELECT nothing FROM ut", "SELECT * FROM no_such", "SELECT k FROM ut GROUP BY approx", "SELECT (", "SELECT 'a", "/* open", "SELECT 1; SELECT 2",
    "CREATE SKETH s ON ut (k)", "SHOW SKETHES", "SELECT no_such(1)", "SELECT 1 +", "INSERT INTO no_such VALUES (1)", "SELECT COUNT(*) n FROM ut WITHIN 5",
    "CREATE TABLE t (k NOTYPE)", "DROP TABLE no_such", "SELECT approximate COUNT FROM no_such", "SELECT * FROM ut WHERE", "DESCRIBE no_such approx",
]  # fmt: skip
WITH_PARAMETERS = [
    ("SELECT :a AS approx", {"a": 1}), ("SELECT k FROM ut WHERE k = :k", {"k": 1}), ("SELECT ? + ?", [1, 2]), ("SELECT :missing", {"a": 1}), ("SELECT approx n FROM ut WHERE k = :k", {"k": 1}),
]  # fmt: skip


def test_statements_of_sparks_are_as_they_were(spark, tmp_path):
    spark.sql("SELECT 1 AS k, 2 AS approx, 3 AS sketch").createOrReplaceTempView("ut")
    without = [_outcome(spark, *asked) for asked in _asked()]
    with enabled(spark, tmp_path):
        having = [_outcome(spark, *asked) for asked in _asked()]
    differing = [(a, w, h) for a, w, h in zip(_asked(), without, having, strict=True) if w != h]
    assert not differing
    kinds = {o[0] for o in without}
    assert {"rows", "ParseException", "AnalysisException"} <= kinds
    spark.catalog.dropTempView("ut")


def _asked():
    return [(text, None) for text in STATEMENTS] + WITH_PARAMETERS


def _outcome(spark, text, args):
    """Plans and the rows of what costs no job; or class, condition, message, parameters and places of the error."""
    from pyspark.errors import PySparkException

    try:
        frame = spark.sql(text, args=args) if args is not None else spark.sql(text)
        plan = re.sub(r"#\d+|plan_id=\d+|id=\d+", "#", frame._jdf.queryExecution().optimizedPlan().toString())
        local = "LocalRelation" in plan or "CommandResult" in plan or "OneRowRelation" in plan
        found = (
            sorted(map(str, frame.collect()))
            if local and "Join" not in plan and "Aggregate" not in plan
            else []
        )
        return "rows", plan, frame.schema.simpleString(), re.sub(r"#\d+|id=\d+", "#", str(found))
    except PySparkException as fault:
        contexts = [(c.startIndex(), c.stopIndex(), c.fragment()) for c in fault.getQueryContext()]
        message = re.sub(r"#\d+", "#", str(fault))
        return type(fault).__name__, fault.getCondition(), message, fault.getMessageParameters(), contexts
