"""Every way out is reviewed: typed, it gives the user's own answer. A new one is found here by itself."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from support.golden_text import assert_golden
from support.questions import query
from support.schemas import schema, table

import skimql
from skimql.errors import SkimqlError

KINDS = ("ParseError", "UnsupportedQuery", "UnknownName", "DataError", "BudgetExceeded", "AccuracyNotReached", "EnvironmentFault",
         "CorruptSketch", "IncompatibleSketches", "BadSetting", "MessageTooLarge", "SkimqlError")  # fmt: skip


def hints_of(tree):
    """The text of every expression that is given to an error as its way out."""
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        name = ast.unparse(call.func).split(".")[-1]
        yield from (ast.unparse(k.value) for k in call.keywords if k.arg == "hint")
        place = {"fault": 3 if len(call.args) > 3 else 2, "_fault": 2}.get(name, 4 if name in KINDS else None)
        if place is not None and len(call.args) > place:
            yield ast.unparse(call.args[place])


def test_every_way_out_in_the_code_has_been_reviewed():
    """Before it goes into the fixture: type it, and compare with the exact answer to the question."""
    root = Path(skimql.__file__).parent
    found = {
        hint
        for folder in ("parser", "engine", "optimizer")
        for path in (root / folder).rglob("*.py")
        for hint in hints_of(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert_golden("errors", "ways_out.list", "\n".join(sorted(found)))


ROOT = Path(__file__).parents[2]


@pytest.fixture
def ways_out(monkeypatch):
    """The corpus of the study `hints`: ``python -m benchmarks.faults --studies hints`` types all of it."""
    monkeypatch.syspath_prepend(str(ROOT))
    for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    from benchmarks.faults import ways_out

    return ways_out


def test_every_code_has_a_way_out_that_is_typed_or_a_reason_why_not(ways_out):
    codes = set(re.findall(r"`SKIMQL_([A-Z_]+)`", (ROOT / "docs" / "errors.md").read_text()))
    typed = {way.code for way in ways_out.WAYS}
    assert typed | set(ways_out.NOT_TYPED) == codes
    assert not typed & set(ways_out.NOT_TYPED)


@pytest.mark.spark
def test_ways_out_give_the_users_own_answer(ways_out, session):
    from benchmarks.faults.hints import WaysOut

    typing = WaysOut(session)
    for way in ways_out.REWRITTEN[1::8]:
        assert typing.fault_of(way) == "", way.question


TABLES = schema(table("a", k="int", x="int", t="string"), table("b", k="int", y="int"))
SELECT = "SELECT APPROXIMATE COUNT(*) FROM a "


@pytest.mark.parametrize(
    "text",
    [
        SELECT + "LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL",
        SELECT + "FULL JOIN b ON a.k = b.k",
        SELECT + "LEFT ANTI JOIN b ON a.k = b.k",
        SELECT + "JOIN b ON a.k < b.k",
        SELECT + "JOIN b ON a.k <=> b.k",
        SELECT + "JOIN b ON a.k = b.k OR a.x = b.y",
        SELECT + ", b",
        SELECT + "UNION ALL SELECT COUNT(*) FROM b",
        "SELECT APPROXIMATE COUNT(*) FROM (SELECT k FROM a UNION ALL SELECT k FROM b) z",
        "SELECT APPROXIMATE COUNT(DISTINCT k) FROM (SELECT k FROM a EXCEPT ALL SELECT k FROM b) z",
        "SELECT APPROXIMATE COUNT(DISTINCT a.x + b.y) FROM a JOIN b ON a.k = b.k",
        SELECT + "WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        SELECT + "WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y < a.x)",
        SELECT + "WHERE EXISTS (SELECT 1 FROM b WHERE b.k > a.k)",
        SELECT + "WHERE x > (SELECT MAX(y) FROM b WHERE b.k = a.k)",
        "SELECT APPROXIMATE MAX(x) FROM a",
        "SELECT APPROXIMATE LOG(SUM(x)) FROM a",
        "SELECT APPROXIMATE * FROM a",
        "SELECT APPROXIMATE COUNT(*) OVER () FROM a",
    ],
)
def test_where_only_spark_gives_the_answer_nothing_else_is_said(text):
    with pytest.raises(SkimqlError) as caught:
        query(text, TABLES)
    assert caught.value.hint == "EXACT SELECT ..."


def test_what_is_computed_from_a_group_is_ordered_by_as_the_way_out_says():
    """Also where an item has the name of the column within."""
    text = "SELECT APPROXIMATE t, COUNT(*) AS n FROM a GROUP BY t ORDER BY concat(t, 'x')"
    with pytest.raises(SkimqlError) as caught:
        query(text, TABLES)
    first, _, _ = caught.value.hint.partition(", or ")
    assert first == "GROUP BY t, concat(t, 'x')"
    assert query(text.replace("GROUP BY t", first), TABLES, known=("GROUP BY", "ORDER BY")).order


@pytest.mark.parametrize("name", ["k", "y", "nothing_of_that_name"])
def test_what_is_computed_from_an_item_is_not_grouped_by_as_if_it_were_a_column(name):
    """In GROUP BY the name means a column: of both tables, of another one, or none."""
    text = f"SELECT APPROXIMATE t AS {name}, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY t ORDER BY "
    with pytest.raises(SkimqlError, match="neither an aggregate nor in GROUP BY") as caught:
        query(f"{text}concat({name}, 'x')", TABLES)
    assert caught.value.hint == "EXACT SELECT ..."
    assert query(f"{text}{name}", TABLES, known=("GROUP BY", "ORDER BY")).order


def test_a_column_of_both_tables_is_no_other_meaning_of_an_item_in_order_by():
    text = "SELECT APPROXIMATE t, COUNT(*) AS k FROM a JOIN b ON a.k = b.k GROUP BY t ORDER BY k + 1"
    assert query(text, TABLES, known=("GROUP BY", "ORDER BY")).order


@pytest.mark.parametrize(
    ("left", "right", "hint"),
    [
        ("int", "boolean", "CAST one side to the type of the other"),
        ("array<int>", "array<int>", "EXACT SELECT ..."),
        ("string collate UTF8_LCASE", "string collate UTF8_LCASE", "EXACT SELECT ..."),
        ("struct<x:int>", "struct<x:int>", "EXACT SELECT ..."),
    ],
)
def test_types_that_spark_compares_are_left_to_it(left, right, hint):
    from skimql.engine.sources.keys import _compared

    resolved = query(SELECT + "JOIN b ON a.k = b.k", TABLES)
    with pytest.raises(SkimqlError) as caught:
        _compared(resolved, resolved.graph.edges[0], left, right, True)
    assert caught.value.hint == hint


def test_rows_are_equal_where_both_are_null_and_columns_are_not():
    with pytest.raises(SkimqlError) as caught:
        query(SELECT + "JOIN b ON (a.k, a.x) = (b.k, b.y)", TABLES)
    assert caught.value.hint.startswith("EXACT SELECT ...")


def test_rows_of_a_grouped_select_are_not_said_to_stand_inside_from():
    from skimql.parser.resolve import resolve_rows
    from skimql.parser.statement import parse_statement

    with pytest.raises(SkimqlError) as caught:
        resolve_rows(parse_statement("ESTIMATE ROWS FOR SELECT k FROM a GROUP BY k"), TABLES)
    assert "ESTIMATE ROWS" in caught.value.message


def test_error_without_within_is_told_so():
    with pytest.raises(SkimqlError) as caught:
        query(SELECT + "LIMIT 10 ERROR 5%", TABLES)
    assert caught.value.hint.startswith("ERROR WITHIN 5%")


def test_the_in_for_an_exists_keeps_its_parentheses():
    exists = "EXISTS (SELECT 1 FROM b WHERE (b.y < 7 OR b.y = 9) AND b.k = a.k AND b.y > 3)"
    with pytest.raises(SkimqlError) as caught:
        query(SELECT + "WHERE " + exists, TABLES)
    assert "a.k IN (SELECT b.k FROM b WHERE (b.y < 7 OR b.y = 9) AND b.y > 3)" in caught.value.hint
