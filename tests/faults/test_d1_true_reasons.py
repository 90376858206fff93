"""Reasons that are true, and ways out that lead to the user's own answer; pure."""

from __future__ import annotations

import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.errors import SkimqlError
from skimql.parser.expressions import Grouped
from skimql.parser.statement import parse_statement

TABLES = schema(table("a", k="int", x="int", d="date", t="string"), table("b", k="int", y="int", q="double"))
JOINED = " FROM a JOIN b ON a.k = b.k "


def refused(text):
    with pytest.raises(SkimqlError) as caught:
        query(text, TABLES)
    return caught.value


@pytest.mark.parametrize("clause", ["ORDER BY d", "HAVING d > 2000", "ORDER BY d DESC NULLS LAST"])
def test_the_alias_of_a_group_expression_may_be_a_column_too(clause):
    read = query(f"year(a.d) AS d, COUNT(*){JOINED}GROUP BY year(a.d) {clause}", TABLES)
    value = read.order[0].expression if read.order else read.having.operands[0]
    assert value == Grouped(0)


def test_order_by_all_and_limit_all_are_read():
    read = query(f"a.t, COUNT(*){JOINED}GROUP BY a.t ORDER BY ALL DESC LIMIT ALL", TABLES)
    assert [o.descending for o in read.order] == [True, True]
    assert read.limit is None


@pytest.mark.parametrize(
    "name", ["TRY_SUM", "try_avg", "BOOL_OR", "some", "skewness", "listagg", "hll_sketch_agg", "approx_top_k"]
)
def test_an_aggregate_that_is_not_estimated_is_called_one(name):
    fault = refused(f"{name}(a.x){JOINED}")
    assert fault.code == "SKIMQL_UNSUPPORTED_AGGREGATE"
    assert name.upper() in fault.message
    assert fault.hint == "EXACT SELECT ..."


def test_mean_is_avg():
    mean, avg = (query(f"{f}(b.y){JOINED}", TABLES).aggregates[0] for f in ("MEAN", "AVG"))
    assert (mean.function, mean.total, mean.presence) == (avg.function, avg.total, avg.presence)


def test_what_reads_no_table_is_not_said_to_lack_a_group():
    fault = refused(f"current_date() AS d, COUNT(*){JOINED}")
    assert "GROUP BY" not in fault.message + fault.hint


def test_a_value_of_a_group_column_is_grouped_by_beside_it():
    fault = refused(f"a.t || '!', COUNT(*){JOINED}GROUP BY a.t")
    clause = fault.hint.split(", or ")[0]
    assert clause == "GROUP BY a.t, a.t || '!'"
    assert len(query(f"a.t || '!', COUNT(*){JOINED}{clause}", TABLES).groups) == 2


@pytest.mark.parametrize(
    "text", [":p", "?", "COUNT(*) FROM a WHERE x = :limit OR x = 1", "COUNT(*) FROM a LIMIT ?"]
)
def test_a_parameter_is_called_one(text):
    fault = refused(text if "FROM" in text else text + JOINED)
    assert fault.code == "SKIMQL_PARAMETER"
    assert fault.sql[slice(*fault.span)] in (":p", "?", ":limit")


@pytest.mark.parametrize("word", ["join", "on", "from", "using", "where", "for", "case"])
def test_a_column_with_the_name_of_a_word_is_told_of_backticks(word):
    fault = refused(f"COUNT({word}) FROM a JOIN b ON a.k = b.k")
    assert f"`{word}`" in fault.hint
    quoted = schema(table("a", k="int", **{word: "int"}), TABLES["b"])
    assert query(f"COUNT(`{word}`) FROM a JOIN b ON a.k = b.k", quoted)


@pytest.mark.parametrize("condition", ["case > 3", "1 = case", "case + 1 = 2", "case IN (1, 2)"])
def test_so_it_is_in_conditions(condition):
    assert "`case` in backticks" in refused(f"COUNT(*){JOINED}WHERE {condition}").hint


@pytest.mark.parametrize(
    ("clause", "reason"),
    [
        ("BEHAVIOR strict", "BEHAVIOR takes a text"),
        ("BEHAVIOR", "BEHAVIOR takes a text"),
        ("BEHAVIOR 'strict' BEHAVIOR 'strict'", "BEHAVIOR"),
    ],
)
def test_a_behavior_without_quotes_is_told_of_them(clause, reason):
    with pytest.raises(SkimqlError) as caught:
        parse_statement(f"SELECT APPROXIMATE COUNT(*){JOINED}ERROR WITHIN 5% {clause}")
    assert reason in caught.value.message
    assert ("takes a text" in caught.value.message) is (clause.count("'") == 0)


def test_the_caret_of_an_inner_distinct_is_at_its_own_select():
    fault = refused("COUNT(*) FROM (SELECT DISTINCT k FROM a) z JOIN b ON z.k = b.k")
    assert fault.sql[slice(*fault.span)].startswith("SELECT DISTINCT")


def test_what_is_made_of_conditions_and_remainders_on_estimates_is_refused_before_a_scan():
    for item in ("COUNT(*) % 3", "1 + (SUM(a.x) IS NULL)", "(NOT COUNT(*) = 1) = true"):
        assert refused(item + JOINED).code == "SKIMQL_AGGREGATE_EXPRESSION"
        assert refused(f"COUNT(*){JOINED}ORDER BY {item}").code == "SKIMQL_AGGREGATE_EXPRESSION"
    assert query(f"COUNT(*) AS n{JOINED}HAVING n > 3 AND SUM(a.x) IS NOT NULL", TABLES).having is not None
