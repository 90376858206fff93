"""Refused statements whose errors print a statement or a rewrite as the way out, and what a user then types.

Every `...` of a way out is filled with the user's own parts; the answer must be that of Spark to the user's question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EXACT = "EXACT SELECT"
_CLAUSES = re.compile(r" (ERROR WITHIN|SIZE|SEED|BEHAVIOR) .*$")
APPROXIMATE = "SELECT APPROXIMATE"

# name -> (columns, rows): duplicates, NULL and keys that join nothing, so that a question that was changed shows.
TABLES = {
    "a": ("k INT, x INT, t STRING", [(1, 5, "u"), (1, 5, "v"), (2, None, "u"), (3, 7, "w"), (None, 1, "u"), (9, 2, None)]),
    "b": ("k INT, y INT, w INT", [(1, 4, 1), (1, 6, 2), (2, 8, 3), (2, 8, 3), (None, 3, 4), (3, 2, 5)]),
    "c": ("k INT, z INT", [(1, 10), (2, 20), (2, 20), (4, 40)]),
    "vals": ("v INT", [(1,), (2,), (7,)]),
}  # fmt: skip
JOIN = "FROM a JOIN b ON a.k = b.k"


@dataclass(frozen=True, slots=True)
class Way:
    """A refused statement and the way out that is typed.

    Attributes
    ----------
    code : str
        Of the error, without ``SKIMQL_``.
    question : str
        The statement as the user wrote it.
    says : str
        What the way out must contain.
    typed : tuple of str
        What the user types then, the last one for the answer; the question as an exact run where empty.
    before : tuple of str
        What was said before the question.
    truth : str
        The question in Spark's words; what was typed, without words of ours, where empty.
    """

    code: str
    question: str
    says: str = EXACT
    typed: tuple[str, ...] = ()
    truth: str = ""
    before: tuple[str, ...] = ()

    def statements(self) -> tuple[str, ...]:
        """What is typed."""
        return self.typed or (self.question.replace(APPROXIMATE, EXACT, 1),)

    def in_spark(self) -> str:
        """The question for Spark."""
        return self.truth or _CLAUSES.sub("", self.question.replace(APPROXIMATE, "SELECT", 1))


def _exact(code: str, *rest: str) -> tuple[Way, ...]:
    return tuple(Way(code, f"{APPROXIMATE} {text}") for text in rest)


# One of every code whose way out is the exact run.
EXACTLY = (
    *_exact("NON_EQUI_JOIN", "COUNT(*) FROM a JOIN b ON a.k < b.k", "SUM(x) FROM a, b WHERE a.x >= b.y ERROR WITHIN 5%"),
    *_exact("OR_JOIN", "COUNT(*) FROM a JOIN b ON a.k = b.k OR a.x = b.y SIZE 64 KB SEED 3"),
    *_exact("CROSS_PREDICATE", f"COUNT(*) {JOIN} AND a.x IN (b.y, b.w)"),
    *_exact("NULL_SAFE_JOIN", "COUNT(*) FROM a JOIN b ON a.k <=> b.k", "COUNT(*) FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k"),
    *_exact("MIXED_KEY", "COUNT(*) FROM a, b, c WHERE a.k + b.k = c.k", "COUNT(*) FROM a, b WHERE a.k + b.w = 3"),
    *_exact("CROSS_PRODUCT", "COUNT(*), SUM(b.y) FROM a, b", "COUNT(*) FROM a CROSS JOIN b BEHAVIOR 'strict'"),
    *_exact("CYCLIC_JOIN", "COUNT(*) FROM a, b, c WHERE a.k = b.k AND b.y = c.z AND c.k = a.x"),
    *_exact("OUTER_JOIN", "COUNT(*) FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL", "SUM(y) FROM a FULL JOIN b ON a.k = b.k",
            "COUNT(*) FROM a LEFT ANTI JOIN b ON a.k = b.k"),
    *_exact("NOT_DECOMPOSED", "COUNT(*) FROM (SELECT k FROM a LIMIT 2) t SIZE 64 KB USING sampled_query",
            "COUNT(*) FROM (SELECT MAX(x) AS m FROM a GROUP BY t) g SIZE 64 KB USING sampled_query"),
    *_exact("UNSUPPORTED_RELATION", "COUNT(*) FROM a JOIN range(3) r ON a.k = r.id", "COUNT(*) FROM VALUES (1), (2) v(k)"),
    *_exact("UNSUPPORTED_CLAUSE", "DISTINCT COUNT(*) FROM a", "t, COUNT(*) FROM a GROUP BY ROLLUP (t)"),
    *_exact("AGGREGATE_IN_FROM", "COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) g JOIN b ON g.k = b.k",
            "SUM(n) FROM (SELECT MAX(x) AS n FROM a) g"),
    *_exact("SET_OPERATION", "COUNT(*) FROM (SELECT k FROM a UNION SELECT k FROM b) s",
            "COUNT(*) FROM (SELECT k FROM a UNION ALL SELECT k FROM b) s"),
    *_exact("SET_OF_JOINS", f"COUNT(DISTINCT k) FROM (SELECT a.k {JOIN} UNION SELECT k FROM c) s"),
    *_exact("SUBQUERY", "COUNT(*) + (SELECT MAX(y) FROM b) FROM a"),
    *_exact("CORRELATED_SUBQUERY", "COUNT(*) FROM a WHERE x > (SELECT MAX(y) FROM b WHERE b.k = a.k)",
            "COUNT(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"),
    *_exact("UNSUPPORTED_AGGREGATE", "MAX(x), COUNT(*) FROM a", f"MIN(y) {JOIN}", "COLLECT_LIST(x) FROM a"),
    *_exact("DISTINCT", "SUM(DISTINCT y) FROM b", f"AVG(DISTINCT y) {JOIN}"),
    *_exact("AGGREGATE_EXPRESSION", "LOG(SUM(y)) FROM b", f"COUNT(*) > 3 {JOIN}", f"COUNT(*) % 4 {JOIN}"),
    *_exact("CROSS_EXPRESSION", f"SUM(a.x / b.y) {JOIN}", f"SUM(CASE WHEN a.x > b.y THEN 1 ELSE 0 END) {JOIN}"),
    *_exact("DISTINCT_JOIN", "COUNT(DISTINCT a.x, b.y, c.z) FROM a, b, c WHERE a.k = b.k AND b.k = c.k"),
    *_exact("DISTINCT_TYPE", "COUNT(DISTINCT array(x)) FROM a"),
    *_exact("WINDOW", "t, row_number() OVER (ORDER BY t) AS r, COUNT(*) FROM a GROUP BY t"),
    *_exact("UNSUPPORTED_FUNCTION", "COUNT(*) FROM a WHERE rand(1) < 2"),
    *_exact("GROUP_TYPE", "t COLLATE UTF8_LCASE AS c, COUNT(*) AS n FROM a GROUP BY t COLLATE UTF8_LCASE ORDER BY n, c"),
    *_exact("NO_FROM", "COUNT(*)"),
    Way("NOT_FINITE", f"{APPROXIMATE} SUM(y * CAST('Infinity' AS DOUBLE)) {JOIN} USING hash", truth=f"SELECT SUM(y * CAST('Infinity' AS DOUBLE)) {JOIN}"),
)  # fmt: skip

# Ways out that are a rewrite, or another statement.
REWRITTEN = (
    Way("PARSE_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} SIZE 0 KB", "SIZE 64 KB", (f"{APPROXIMATE} SUM(y) {JOIN} SIZE 64 KB",), f"SELECT SUM(y) {JOIN}"),
    Way("PARSE_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} SEED 1e30", "SEED 7", (f"{APPROXIMATE} SUM(y) {JOIN} SEED 7",), f"SELECT SUM(y) {JOIN}"),
    Way("PARSE_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} SEED 1 SEED 2", "keep one", (f"{APPROXIMATE} SUM(y) {JOIN} SEED 1",), f"SELECT SUM(y) {JOIN}"),
    Way("PARSE_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} ERROR WITHIN 5", "ERROR WITHIN 5%", (f"{APPROXIMATE} SUM(y) {JOIN} ERROR WITHIN 5%",), f"SELECT SUM(y) {JOIN}"),
    Way("PARSE_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} ERROR WITHIN 5% CONFIDENCE 95", "CONFIDENCE 95%", (f"{APPROXIMATE} SUM(y) {JOIN} ERROR WITHIN 5% CONFIDENCE 95%",), f"SELECT SUM(y) {JOIN}"),
    Way("PARSE_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} USING hsah", "hash", (f"{APPROXIMATE} SUM(y) {JOIN} USING hash",), f"SELECT SUM(y) {JOIN}"),
    Way("PARSE_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} BEHAVIOR 'stirct'", "strict", (f"{APPROXIMATE} SUM(y) {JOIN} BEHAVIOR 'strict'",), f"SELECT SUM(y) {JOIN}"),
    Way("PARSE_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} ERROR WITHIN 5% WHERE x > 1", "behind the whole SELECT",
        (f"{APPROXIMATE} SUM(y) {JOIN} WHERE x > 1 ERROR WITHIN 5%",), f"SELECT SUM(y) {JOIN} WHERE x > 1"),
    Way("PARSE_ERROR", f"EXPLAIN FORMAT YAML {APPROXIMATE} SUM(y) {JOIN}", "EXPLAIN FORMAT TEXT",
        (f"EXPLAIN FORMAT TEXT {APPROXIMATE} SUM(y) {JOIN}", f"{APPROXIMATE} SUM(y) {JOIN}"), f"SELECT SUM(y) {JOIN}"),
    Way("SYNTAX_ERROR", f"{APPROXIMATE} SUM(y) {JOIN} LIMIT 10 ERROR 5%", "ERROR WITHIN 5%",
        (f"{APPROXIMATE} SUM(y) {JOIN} LIMIT 10 ERROR WITHIN 5%",), f"SELECT SUM(y) {JOIN} LIMIT 10"),
    Way("UNSUPPORTED_AGGREGATE", f"{APPROXIMATE} COUNT() {JOIN}", "COUNT(*)", (f"{APPROXIMATE} COUNT(*) {JOIN}",), f"SELECT COUNT(*) {JOIN}"),
    Way("OPEN_QUOTE", f"{APPROXIMATE} COUNT(*) {JOIN} WHERE t = 'u", "close it with '", (f"{APPROXIMATE} COUNT(*) {JOIN} WHERE t = 'u'",), f"SELECT COUNT(*) {JOIN} WHERE t = 'u'"),
    Way("OPEN_COMMENT", f"{APPROXIMATE} COUNT(*) {JOIN} /* all of them", "*/", (f"{APPROXIMATE} COUNT(*) {JOIN} /* all of them */",), f"SELECT COUNT(*) {JOIN}"),
    Way("DOUBLE_QUOTES", f'{APPROXIMATE} SUM(v) FROM "vals"', "`vals` in backticks", (f"{APPROXIMATE} SUM(v) FROM `vals`",), "SELECT SUM(v) FROM vals"),
    Way("SEVERAL_STATEMENTS", f"{APPROXIMATE} COUNT(*) FROM a; {APPROXIMATE} SUM(y) {JOIN}", "one after the other",
        (f"{APPROXIMATE} COUNT(*) FROM a", f"{APPROXIMATE} SUM(y) {JOIN}"), f"SELECT SUM(y) {JOIN}"),
    Way("TOO_LONG", f"{APPROXIMATE} COUNT(*) FROM a WHERE k IN (1, 2, 7{', 7' * 20_000})", "k IN (SELECT k FROM t)",
        (f"{APPROXIMATE} COUNT(*) FROM a WHERE k IN (SELECT v FROM vals)",), "SELECT COUNT(*) FROM a WHERE k IN (1, 2, 7)"),
    Way("UNKNOWN_TABLE", f"{APPROXIMATE} COUNT(*) FROM vasl", "vals", (f"{APPROXIMATE} COUNT(*) FROM vals",), "SELECT COUNT(*) FROM vals"),
    Way("UNKNOWN_COLUMN", f"{APPROXIMATE} SUM(vals.vv) FROM vals", "v", (f"{APPROXIMATE} SUM(vals.v) FROM vals",), "SELECT SUM(v) FROM vals"),
    Way("AMBIGUOUS_NAME", f"{APPROXIMATE} COUNT(*) {JOIN} WHERE k = 1", "a.k", (f"{APPROXIMATE} COUNT(*) {JOIN} WHERE a.k = 1",), f"SELECT COUNT(*) {JOIN} WHERE a.k = 1"),
    Way("AMBIGUOUS_NAME", f"{APPROXIMATE} COUNT(*) FROM a JOIN a ON k = k", "a AS a JOIN a AS b", (f"{APPROXIMATE} COUNT(*) FROM a AS a JOIN a AS b ON a.k = b.k",), "SELECT COUNT(*) FROM a a JOIN a b ON a.k = b.k"),
    Way("AMBIGUOUS_NAME", f"{APPROXIMATE} COUNT(*) AS n, SUM(y) AS n {JOIN} ORDER BY n", "AS", (f"{APPROXIMATE} COUNT(*) AS n, SUM(y) AS m {JOIN} ORDER BY n",), f"SELECT COUNT(*), SUM(y) {JOIN}"),
    Way("UNKNOWN_COLUMN", f"{APPROXIMATE} COUNT(*) FROM a JOIN b USING (x)", "ON", (f"{APPROXIMATE} COUNT(*) FROM a JOIN b ON a.x = b.y",), "SELECT COUNT(*) FROM a JOIN b ON a.x = b.y"),
    Way("ORDINAL", f"{APPROXIMATE} t, COUNT(*) FROM a GROUP BY 3", "1 to 2", (f"{APPROXIMATE} t, COUNT(*) FROM a GROUP BY 1",), "SELECT t, COUNT(*) FROM a GROUP BY t"),
    Way("COLUMN_COUNT", f"{APPROXIMATE} COUNT(*) FROM (SELECT k, x FROM a) s(k)", "each column once", (f"{APPROXIMATE} COUNT(*) FROM (SELECT k, x FROM a) s(k, x)",), "SELECT COUNT(*) FROM a"),
    Way("NOT_AGGREGATED", f"{APPROXIMATE} upper(t) AS u, COUNT(*) FROM a GROUP BY t", "GROUP BY t, upper(t)", (f"{APPROXIMATE} upper(t) AS u, COUNT(*) FROM a GROUP BY t, upper(t)",), "SELECT upper(t) AS u, COUNT(*) FROM a GROUP BY t"),
    Way("NOT_AGGREGATED", f"{APPROXIMATE} COUNT(a.*) {JOIN}", "name the columns", (f"{APPROXIMATE} COUNT(a.k, a.x, a.t) {JOIN}",), f"SELECT COUNT(a.k, a.x, a.t) {JOIN}"),
    Way("KEY_TYPES", f"{APPROXIMATE} COUNT(*) FROM a JOIN b ON (a.k, a.x) = (b.k, NULLIF(b.y, 8))"),
    Way("KEY_TYPES", f"{APPROXIMATE} COUNT(DISTINCT v) FROM (SELECT k AS v FROM a UNION SELECT CAST(k AS DOUBLE) FROM b) s", "CAST both to one type",
        (f"{APPROXIMATE} COUNT(DISTINCT v) FROM (SELECT CAST(k AS DOUBLE) AS v FROM a UNION SELECT CAST(k AS DOUBLE) FROM b) s",), "SELECT COUNT(DISTINCT v) FROM (SELECT k AS v FROM a UNION SELECT CAST(k AS DOUBLE) FROM b) s"),
    Way("INCOMPARABLE_KEYS", f"{APPROXIMATE} COUNT(*) FROM a JOIN b ON array(a.k) = array(b.k)"),
    Way("INCOMPARABLE_KEYS", f"{APPROXIMATE} COUNT(*) FROM a a1 JOIN a a2 ON a1.t COLLATE UTF8_LCASE = upper(a2.t)"),
    Way("SUBQUERY_WITH", f"WITH q AS (SELECT k FROM b WHERE y > 5) {APPROXIMATE} COUNT(*) FROM a WHERE k IN (SELECT k FROM q)", "its SELECT in the subquery",
        (f"{APPROXIMATE} COUNT(*) FROM a WHERE k IN (SELECT k FROM (SELECT k FROM b WHERE y > 5) q)",), "SELECT COUNT(*) FROM a WHERE k IN (SELECT k FROM b WHERE y > 5)"),
    Way("CORRELATED_SUBQUERY", f"{APPROXIMATE} COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "a.k IN (SELECT b.k FROM b)",
        (f"{APPROXIMATE} COUNT(*) FROM a WHERE a.k IN (SELECT b.k FROM b)",), "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"),
    Way("INNER_APPROXIMATE", f"{APPROXIMATE} COUNT(*) FROM (SELECT APPROXIMATE k FROM a) s", "outermost", (f"{APPROXIMATE} COUNT(*) FROM (SELECT k FROM a) s",), "SELECT COUNT(*) FROM a"),
    Way("PARAMETER", f"{APPROXIMATE} COUNT(*) {JOIN} WHERE x > :least", "write its value", (f"{APPROXIMATE} COUNT(*) {JOIN} WHERE x > 4",), f"SELECT COUNT(*) {JOIN} WHERE x > 4"),
    Way("LIMIT", f"{APPROXIMATE} t, COUNT(*) AS n FROM a GROUP BY t ORDER BY t LIMIT 1 + 1", "write the number", (f"{APPROXIMATE} t, COUNT(*) AS n FROM a GROUP BY t ORDER BY t LIMIT 2",), "SELECT t, COUNT(*) FROM a GROUP BY t ORDER BY t LIMIT 2"),
    Way("UNKNOWN_METHOD", f"{APPROXIMATE} COUNT(*) FROM a, b, c WHERE a.k = b.k AND b.y = c.z USING hash", "convolution", (f"{APPROXIMATE} COUNT(*) FROM a, b, c WHERE a.k = b.k AND b.y = c.z USING convolution",), "SELECT COUNT(*) FROM a, b, c WHERE a.k = b.k AND b.y = c.z"),
    Way("UNKNOWN_METHOD", f"{APPROXIMATE} COUNT(DISTINCT x) FROM a USING hash", "", (f"{APPROXIMATE} COUNT(DISTINCT x) FROM a",), "SELECT COUNT(DISTINCT x) FROM a"),
    Way("TOO_MANY_GROUPS", f"{APPROXIMATE} t, COUNT(*) FROM a GROUP BY t OPTIONS (max_groups = 2)", "SET skimql.max_groups", ("SET skimql.max_groups = 100", f"{APPROXIMATE} t, COUNT(*) FROM a GROUP BY t"), "SELECT t, COUNT(*) FROM a GROUP BY t"),
    Way("BUDGET_EXCEEDED", f"{APPROXIMATE} SUM(y) {JOIN} SIZE 100 B USING hash", "SIZE", (f"{APPROXIMATE} SUM(y) {JOIN} SIZE 64 KB USING hash",), f"SELECT SUM(y) {JOIN}"),
    Way("ACCURACY_NOT_REACHED", f"{APPROXIMATE} SUM(y) {JOIN} USING hash ERROR WITHIN 0.001% BEHAVIOR 'strict' OPTIONS (sparse = false, buckets = 2)",
        "run_on_full_table", (f"{APPROXIMATE} SUM(y) {JOIN} USING hash ERROR WITHIN 0.001% BEHAVIOR 'run_on_full_table' OPTIONS (sparse = false, buckets = 2)",), f"SELECT SUM(y) {JOIN}"),
    Way("NOT_AGGREGATED", f"{APPROXIMATE} t, COUNT(*) AS n FROM a GROUP BY t ORDER BY concat(t, 'x')", "GROUP BY t, concat(t, 'x')", (f"{APPROXIMATE} t, COUNT(*) AS n FROM a GROUP BY t, concat(t, 'x') ORDER BY concat(t, 'x')",), "SELECT t, COUNT(*) FROM a GROUP BY t ORDER BY concat(t, 'x')"),
    Way("OVERFLOW", f"{APPROXIMATE} SUM(x + 4611686018427387000) FROM a", "CAST(", (f"{APPROXIMATE} SUM(CAST(x + 4611686018427387000 AS DOUBLE)) FROM a",), "SELECT SUM(CAST(x + 4611686018427387000 AS DOUBLE)) FROM a"),
    Way("UNSTABLE", "CREATE SKETCH u1 ON a (k) WHERE x < year(current_date())", "write the value itself", ("CREATE SKETCH u1 ON a (k) WHERE x < 2026", "CREATE SKETCH u2 ON b (k)", f"{APPROXIMATE} COUNT(*) {JOIN} WHERE x < 2026"), f"SELECT COUNT(*) {JOIN} WHERE x < 2026"),
    Way("CLASS_TWICE", "CREATE SKETCH d1 ON a (k CLASS p, x CLASS p)", "CLASS p2", ("CREATE SKETCH d1 ON a (k CLASS p, x CLASS p2)", f"{APPROXIMATE} COUNT(*) {JOIN}"), f"SELECT COUNT(*) {JOIN}"),
    Way("GROUP_COMPARISON", f"{APPROXIMATE} k, COUNT(*) AS n FROM a WHERE k IS NOT NULL GROUP BY k HAVING n > 0 AND k > '1'", "the condition in WHERE", (f"{APPROXIMATE} k, COUNT(*) AS n FROM a WHERE k IS NOT NULL AND k > '1' GROUP BY k HAVING n > 0",), "SELECT k, COUNT(*) AS n FROM a WHERE k IS NOT NULL GROUP BY k HAVING n > 0 AND k > '1'"),
    Way("GROUP_EXPRESSION", f"{APPROXIMATE} k / 2 AS h, COUNT(*) AS n FROM a WHERE k > 0 GROUP BY k HAVING k / 0 IS NULL", "GROUP BY the whole expression",
        (f"{APPROXIMATE} k / 2 AS h, COUNT(*) AS n FROM a WHERE k > 0 GROUP BY k / 2",), "SELECT k / 2 AS h, COUNT(*) AS n FROM a WHERE k > 0 GROUP BY k"),
    *(Way("INCOMPATIBLE_SKETCHES", f"{APPROXIMATE} COUNT(*) FROM a JOIN b ON a.x = b.y USING hash", says, typed, "SELECT COUNT(*) FROM a JOIN b ON a.x = b.y",
          ("CREATE OR REPLACE SKETCH i1 ON a (x CLASS x) OPTIONS (seed = 5, sparse = false)", "CREATE OR REPLACE SKETCH i2 ON b (y CLASS x) OPTIONS (seed = 6, sparse = false)"))
      for says, typed in (
          ("CREATE OR REPLACE SKETCH i2 ... with the same seed", ("CREATE OR REPLACE SKETCH i2 ON b (y CLASS x) OPTIONS (seed = 5)", f"{APPROXIMATE} COUNT(*) FROM a JOIN b ON a.x = b.y USING hash")),
          ("leave USING out", (f"{APPROXIMATE} COUNT(*) FROM a JOIN b ON a.x = b.y ERROR WITHIN 5%",)))),
    Way("MAX_BYTES", f"{APPROXIMATE} SUM(y) {JOIN} USING hash OPTIONS (buckets = 4M)", "SIZE", (f"{APPROXIMATE} SUM(y) {JOIN} USING hash SIZE 64 KB",), f"SELECT SUM(y) {JOIN}"),
    Way("MAX_BYTES", "CREATE SKETCH m1 ON c (k) OPTIONS (buckets = 16M)", "SIZE", ("CREATE SKETCH m1 ON c (k) SIZE 64 KB", f"{APPROXIMATE} COUNT(*) FROM a JOIN c ON a.k = c.k"), "SELECT COUNT(*) FROM a JOIN c ON a.k = c.k"),
    Way("ROUTE", f"{APPROXIMATE} COUNT(DISTINCT x) FROM a OPTIONS (route = jvm)", "SET skimql.route = auto", ("SET skimql.route = auto", f"{APPROXIMATE} COUNT(DISTINCT x) FROM a"), "SELECT COUNT(DISTINCT x) FROM a"),
    Way("ALREADY_APPENDED", "APPEND SKETCH taken FROM a", "REFRESH SKETCH taken", ("REFRESH SKETCH taken", f"{APPROXIMATE} COUNT(*) FROM a JOIN c ON a.k = c.k"), "SELECT COUNT(*) FROM a JOIN c ON a.k = c.k"),
    Way("INCOMPARABLE_KEYS", "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = (b.y > 2)", "CAST one side", (f"{APPROXIMATE} COUNT(*) FROM a JOIN b ON a.k = CAST(b.y > 2 AS INT)",), "SELECT COUNT(*) FROM a JOIN b ON a.k = CAST(b.y > 2 AS INT)"),
    Way("MISPLACED_AGGREGATE", f"{APPROXIMATE} t AS x, SUM(x) AS s FROM a GROUP BY t ORDER BY SUM(x), t", "a.x", (f"{APPROXIMATE} t AS x, SUM(x) AS s FROM a GROUP BY t ORDER BY SUM(a.x), t",), "SELECT t, SUM(a.x) AS s FROM a GROUP BY t"),
    Way("UNSUPPORTED_STATEMENT", f"{APPROXIMATE} COUNT(*) FROM a UNION ALL SELECT COUNT(*) FROM b"),
    Way("SKETCHES_EXIST", "CREATE SKETCH taken ON a (k) WHERE x > 4", "CREATE OR REPLACE", ("CREATE OR REPLACE SKETCH taken ON a (k) WHERE x > 4", f"{APPROXIMATE} COUNT(*) FROM a JOIN c ON a.k = c.k WHERE x > 4"), "SELECT COUNT(*) FROM a JOIN c ON a.k = c.k WHERE x > 4"),
    Way("NOTHING_TO_SKETCH", f"CREATE SKETCHES w1 FOR QUERIES (SELECT COUNT(*) FROM a; SELECT SUM(y) {JOIN}) SIZE 1 MB MINIMIZE MAX ERROR", "leave it out", (f"CREATE SKETCHES w1 FOR QUERIES (SELECT SUM(y) {JOIN}) SIZE 1 MB MINIMIZE MAX ERROR", f"{APPROXIMATE} SUM(y) {JOIN}"), f"SELECT SUM(y) {JOIN}"),
    Way("PARSE_ERROR", f"CREATE SKETCHES w2 FOR QUERIES (SELECT SUM(y) {JOIN}) SIZE 1 MB MINIMIZE ERROR", "MINIMIZE AVERAGE ERROR", (f"CREATE SKETCHES w2 FOR QUERIES (SELECT SUM(y) {JOIN}) SIZE 1 MB MINIMIZE AVERAGE ERROR", f"{APPROXIMATE} SUM(y) {JOIN}"), f"SELECT SUM(y) {JOIN}"),
    Way("CLAUSE", f"CREATE SKETCHES w3 FOR QUERIES (SELECT SUM(y) {JOIN} SIZE 64 KB) SIZE 1 MB MINIMIZE MAX ERROR", "leave it out here",
        (f"CREATE SKETCHES w3 FOR QUERIES (SELECT SUM(y) {JOIN}) SIZE 1 MB MINIMIZE MAX ERROR", f"{APPROXIMATE} SUM(y) {JOIN}"), f"SELECT SUM(y) {JOIN}"),
    Way("SKETCH_OF_GROUP", "REFRESH SKETCH `taken2.0`", "CREATE OR REPLACE SKETCHES", (f"CREATE OR REPLACE SKETCHES taken2 FOR QUERIES (SELECT COUNT(*) {JOIN}) SIZE 1 MB MINIMIZE MAX ERROR", f"{APPROXIMATE} COUNT(*) {JOIN}"), f"SELECT COUNT(*) {JOIN}"),
    Way("UNKNOWN_NAME", "REFRESH SKETCH tkaen", "taken", ("REFRESH SKETCH taken", f"{APPROXIMATE} COUNT(*) FROM a JOIN c ON a.k = c.k"), "SELECT COUNT(*) FROM a JOIN c ON a.k = c.k"),
    Way("BAD_SETTING", "SET skimql.eror = 5%", "error", ("SET skimql.error = 5%", f"{APPROXIMATE} SUM(y) {JOIN}"), f"SELECT SUM(y) {JOIN}"),
    Way("BAD_SETTING", "SET skimql.error = 5", "5%", ("SET skimql.error = 5%", f"{APPROXIMATE} SUM(y) {JOIN}"), f"SELECT SUM(y) {JOIN}"),
)  # fmt: skip

WAYS = EXACTLY + REWRITTEN

# What is said of a code whose way out is no statement about the question, or one that is typed elsewhere.
_MACHINE = "something to install, start or make room for on the machine"
_FILES = "files or folders: what to do with them is the user's; tests/faults (F1, F5, F11, D5) do it"
_PYTHON = "arguments of Python, not a statement"
_NO_ANSWER = "Spark refuses the question as well: there is no answer to give"
_STREAMS = "streams run in a catalog of their own, which the study has none of: typed in tests/engine/streams"
_EXTENSION = "the statement through Spark's own parser, a view or a notebook: typed in tests/engine/extension and tests/cli"
_APPEND = "typed in tests/engine/materialized and tests/faults (E11, F5), which make the files that it takes"
NOT_TYPED = {
    **dict.fromkeys(
        ("NO_JAVA", "OLD_JAVA", "SPARK_NOT_STARTED", "SPARK_STOPPED", "SPARK_GONE", "SPARK_FAILED", "WORKER_PYTHON",
         "WORKER_DIED", "NO_PYTHON", "NO_THRIFT", "PORT", "OUT_OF_MEMORY", "NOT_SHIPPED", "NO_MATPLOTLIB", "NO_DEMO_DATA", "NOT_WRITTEN", "NEWER_FORMAT"), _MACHINE),
    **dict.fromkeys(
        ("BAD_PATH", "CATALOG_LOCKED", "CATALOG_LOST", "CATALOG_NOT_WRITTEN", "CATALOG_UNREADABLE", "CORRUPT_SKETCH", "FILE_EXISTS",
         "NOT_A_CATALOG", "NOT_A_FILE", "NOT_EXPORTED", "NO_SUCH_FILE", "UNKNOWN_FORMAT", "UNREADABLE_FILE", "BAD_TABLE_NAME"), _FILES),
    **dict.fromkeys(
        ("BAD_VALUE", "GUARD_ON", "JOIN_TOO_LARGE", "NOTHING_TO_PLOT", "NOTHING_TO_COMPARE", "NO_PLAN", "OTHER_SESSION",
         "OPTIONS_WITHHELD", "TABLE_NOT_HERE", "NOT_IN_MEMORY", "NOT_AN_ANSWER", "NO_SKETCH", "SKETCH_PAIR", "SKETCH_ARGUMENT"), _PYTHON),
    **dict.fromkeys(("SOURCE_CHANGED", "SCHEMA_CHANGED", "SKETCH_CHANGED", "OTHER_TYPE", "NOT_TRUSTED", "OTHER_DEFINITION"), _APPEND),
    **dict.fromkeys(("BAD_ARGUMENT", "BAD_KEY", "HAVING", "SPARK_REFUSES", "EXACT_FAILED", "SCAN_FAILED", "GROUPS_FAILED"), _NO_ANSWER),
    "NOT_ANSWERED": "Spark runs what stands for the SELECT of a view: only the extension puts the answer there",
    "UNKNOWN_COMMAND": "another command of the shell",
    "FOREIGN_EXPRESSION": "a sketch made here: what a stranger's file says is not run",
    "WEIGHT_TYPE": "the values as integers or decimals: which ones only the user can say",
    "BOUND_ARGUMENT": "the form of a call; the question names no aggregate",
    "TOO_DEEP": "fewer levels: the same text written flatter, as Spark would have to be told too",
    "TOO_MANY_TABLES": "the exact run, as of other codes; Spark plans 101 tables for minutes",
    "UNSUPPORTED_FEATURE": "the exact run, as of other codes; no statement reaches it at present",
    "UNSUPPORTED_EXPRESSION": "the exact run, as of other codes; the parser refuses what would reach it",
    "MESSAGE_TOO_LARGE": "a larger skimql.fold_bytes: the planner does without such a message, and says so",
    "UNSTABLE_TABLE": "a table of other tuples at every look has no one answer",
    **dict.fromkeys(
        ("STREAM_CATALOG", "NO_STREAM", "UNKNOWN_STREAM", "NAME_TAKEN", "STREAM_IS_READ", "BAD_COLUMNS", "STREAM_SEED", "STREAM_ASKED",
         "STREAM_SETTINGS", "STREAM_RUNS", "CHECKPOINT_MISMATCH", "STATE_CHANGED", "STATIC_CHANGED", "STREAM_OVERFLOW", "STREAM_TYPE",
         "BAD_ROWS", "SINK_NOT_WRITTEN", "NOT_STREAMING", "STREAM_FRAME", "STREAM_FAILED", "STREAM_UNSUPPORTED",
         "QUARANTINE_NOT_WRITTEN", "NO_BEFORE_IMAGE", "NO_KAFKA", "BAD_CHANGE", "NO_PILOT", "STREAM_OF_TABLE", "STREAM_PANES"), _STREAMS),
    **dict.fromkeys(
        ("PYTHON_GONE", "NOT_ENABLED", "FAILED", "TEMPORARY_IN_VIEW", "NOT_KEPT", "OTHER_JAR", "INTERRUPTED", "NOT_CLASSIC", "PARAMETERS",
         "NO_JAR", "NO_CATALOG", "ASKED_LATE", "BAD_FORMAT"), _EXTENSION),
    "SPARK_SETTING": "typed in tests/faults/test_f4_settings_of_spark.py, which sets the setting",
}  # fmt: skip
# Made before the first question.
BEFORE = (
    "CREATE SKETCH taken ON a (k)",
    f"CREATE SKETCHES taken2 FOR QUERIES (SELECT COUNT(*) {JOIN}) SIZE 1 MB MINIMIZE MAX ERROR",
)
