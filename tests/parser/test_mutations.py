"""Any text gives a statement, a query or an error of ours: never a traceback from inside."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.schemas import schema, table

from skimql.errors import SkimqlError
from skimql.parser.explain import explain
from skimql.parser.resolve import resolve, resolve_rows
from skimql.parser.statement import ApproximateSelect, EstimateRows, parse_statement, split_statements

TABLES = schema(
    table("x", id="int", n="int", w="string", d="date"),
    table("y", id="bigint", m="decimal(10,2)", s="struct<a:int>"),
    table("z", id="int", v="double", view="SELECT id, n * 1.0 AS v FROM x WHERE n > 1"),
)

SEEDS = [
    "SELECT APPROXIMATE COUNT(*) AS c, SUM(x.n * (1 - y.m)), AVG(v) FROM x JOIN y ON x.id = y.id, z "
    "WHERE z.id = x.id AND x.n BETWEEN 1 AND 3 AND NOT w LIKE 'a%' "
    "ERROR WITHIN 5% AT CONFIDENCE 95% USING agms OPTIONS (rows = 7) SEED 7",
    "WITH q AS (SELECT id, n + 1 AS k FROM x WHERE d >= DATE '2024-01-02'), r(a) AS (SELECT k FROM q) "
    "SELECT APPROX COUNT(DISTINCT a), lower_bound(c), COUNT(*) c FROM r LEFT JOIN y USING (id) WHERE y.m > 0",
    "SELECT APPROX x.n, COUNT(*) c, SUM(CASE WHEN x.n > 1 THEN y.m ELSE 0 END) / COUNT(*) "
    "FROM x NATURAL JOIN y "
    "GROUP BY 1 HAVING c > 10 ORDER BY 2 DESC NULLS LAST LIMIT 5 OFFSET 2",
    "SELECT APPROX COUNT(DISTINCT k) FROM (SELECT id k FROM x INTERSECT SELECT id FROM y "
    "EXCEPT SELECT id FROM z)",
    "SELECT APPROX COUNT(*) FROM x WHERE id IN (SELECT id FROM y) AND s.a::int = 1 OR n <=> NULL",
    "ESTIMATE ROWS FOR SELECT * FROM (x a JOIN y b ON a.id = b.id) JOIN z `c d` ON `c d`.id = a.id",
    "CREATE SKETCH s ON x (id CLASS c, n + 1) FOR SUM(n) WHERE w = 'F' SIZE 64 KB OPTIONS (rows = 3)",
    "CREATE SKETCHES w FOR QUERIES (SELECT 1; SELECT 2) SIZE 1 MB MINIMIZE MAX ERROR",
    "EXPLAIN FORMAT JSON SELECT APPROX COUNT(*) FROM x -- why\n WHERE n = 1 /* not */",
]
MARKS = {"(", ")", "'", '"', "`", ";", ",", ".", "*", "-", "/*", "é", "\u3000"}
WORDS = sorted({w for s in SEEDS for w in s.split()} | MARKS)


def read(text):
    """All the parser does with a text."""
    split_statements(text)
    statement = parse_statement(text)
    inner = getattr(statement, "statement", statement)
    if isinstance(inner, ApproximateSelect):
        explain(resolve(inner, TABLES, strict=False))
        return resolve(inner, TABLES)
    return resolve_rows(inner, TABLES) if isinstance(inner, EstimateRows) else statement


def fault(text):
    """The error that the text gives, or None."""
    try:
        read(text)
    except SkimqlError as error:
        return error
    return None


@st.composite
def mutated(draw):
    """A good text in which words or characters are dropped, doubled, swapped or replaced."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        parts = text.split(" ") if draw(st.booleans()) else list(text)
        glue = " " if len(parts) < len(text) else ""
        at = draw(st.integers(0, max(0, len(parts) - 1)))
        other = draw(st.integers(0, max(0, len(parts) - 1)))
        change = draw(st.sampled_from(["drop", "double", "swap", "replace", "cut"]))
        if change == "drop":
            del parts[at : at + 1]
        elif change == "double":
            parts[at:at] = parts[at : at + 3]
        elif change == "swap" and parts:
            parts[at], parts[other] = parts[other], parts[at]
        elif change == "replace":
            parts[at : at + 1] = [draw(st.sampled_from(WORDS))]
        else:
            parts = parts[:at]
        text = glue.join(parts)
    return text


@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(mutated())
def test_mutations_give_errors_of_ours_only(text):
    error = fault(text)
    if error is not None:
        shown = str(error)
        assert "Traceback" not in shown
        assert "<class" not in shown
        assert error.span is None or 0 <= error.span[0] <= error.span[1] <= len(error.sql) + 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(lambda w: "SELECT APPROXIMATE " + " ".join(w)))
def test_word_salad_gives_errors_of_ours_only(text):
    error = fault(text)
    assert error is None or str(error)


def test_deep_nesting_is_an_error_not_a_crash():
    deep = "(" * 3000
    for end in (f"x WHERE {deep}n = 1{')' * 3000}", f"{deep}x", f"x WHERE n IN {deep}"):
        for start in ("SELECT APPROX COUNT(*) FROM ", "ESTIMATE ROWS FOR SELECT * FROM "):
            error = fault(start + end)
            assert error is not None
            assert error.code in {"SKIMQL_TOO_DEEP", "SKIMQL_PARSE_ERROR", "SKIMQL_SYNTAX_ERROR"}
