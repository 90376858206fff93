"""The SELECT list beyond plain aggregates: expressions, groups, HAVING, ORDER BY, LIMIT, DISTINCT, CASE."""

from __future__ import annotations

import re

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.errors import SkimqlError, UnsupportedQuery
from skimql.parser.expressions import Aggregated, Constant, Grouped, Operation
from skimql.parser.join_graph import FEATURES, Factor, Term
from skimql.parser.resolve import resolve
from skimql.parser.statement import parse_statement

JOINED = " FROM x JOIN y USING (id)"


def names(resolved):
    return [f.name for f in resolved.features]


def test_plain_aggregates_need_no_feature():
    resolved = query("COUNT(*), SUM(x.n) s" + JOINED, XYZ)
    assert resolved.features == ()
    assert [(i.name, i.expression) for i in resolved.items] == [
        ("count(1)", Aggregated(0)),
        ("s", Aggregated(1)),
    ]
    resolved.refuse_beyond(())


def test_groups_having_order_and_limit():
    resolved = query(
        "lower(w) AS word, COUNT(*) AS n, AVG(z.id) FROM z JOIN x USING (id) GROUP BY word "
        "HAVING n > 100 AND SUM(x.n) IS NOT NULL ORDER BY n DESC, lower(z.w), 2 LIMIT 10 OFFSET 5",
        XYZ,
    )
    (group,) = resolved.groups
    assert (group.vertex, group.expression, group.name) == (0, "LOWER(`w`)", "lower(w)")
    assert [i.expression for i in resolved.items] == [Grouped(0), Aggregated(0), Aggregated(1)]
    assert resolved.aggregates[2].function == "sum"
    present = Operation("not", (Operation("is_null", (Aggregated(2),)),))
    assert resolved.having == Operation("and", (Operation(">", (Aggregated(0), Constant(100))), present))
    assert [(o.expression, o.descending, o.nulls_first) for o in resolved.order] == [
        (Aggregated(0), True, False),
        (Grouped(0), False, True),
        (Aggregated(0), False, True),
    ]
    assert (resolved.limit, resolved.offset) == (10, 5)
    assert names(resolved) == ["GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET"]


@pytest.mark.parametrize("group", ["x.n, z.w", "1, 2", "a, w", "ALL", "X.N, W"])
def test_group_by_names_ordinals_and_all(group):
    resolved = query(f"x.n AS a, z.w, COUNT(*) FROM x JOIN z USING (id) GROUP BY {group}", XYZ)
    assert [(g.vertex, g.expression, g.type) for g in resolved.groups] == [
        (0, "`n`", "int"),
        (1, "`w`", "string"),
    ]
    assert names(resolved) == ["GROUP BY", "GROUP BY over several tables"]
    with pytest.raises(UnsupportedQuery) as caught:
        resolved.refuse_beyond({"GROUP BY"})
    assert caught.value.code == "SKIMQL_UNSUPPORTED_FEATURE"


def test_expressions_of_groups():
    resolved = query("n + 1, (n + 1) * COUNT(*) FROM x GROUP BY n + 1", XYZ)
    assert [i.expression for i in resolved.items] == [Grouped(0), Operation("*", (Grouped(0), Aggregated(0)))]


def test_a_limit_on_one_row_is_no_feature():
    resolved = query("COUNT(*) FROM x ORDER BY 1 LIMIT 10 OFFSET 0", XYZ)
    assert (resolved.features, resolved.limit) == ((), 10)


@pytest.mark.parametrize(
    ("item", "distinct"),
    [
        ("COUNT(DISTINCT id)", ((0, "`id`"),)),
        ("COUNT(DISTINCT x.n, y.m + 1)", ((0, "`n`"), (1, "`m` + 1"))),
        ("COUNT(DISTINCT (x.n))", ((0, "`n`"),)),
        ("COUNT(DISTINCT n) FILTER (WHERE m > 1)", ((0, "`n`"), (1, "CASE WHEN `m` > 1 THEN 1 END"))),
    ],
)
def test_distinct_columns_keep_their_table(item, distinct):
    (aggregate,) = query(item + JOINED, XYZ).aggregates
    assert aggregate.function == "count_distinct"
    assert tuple((f.vertex, f.expression) for f in aggregate.distinct) == distinct
    assert aggregate.total == aggregate.presence == ()


@pytest.mark.parametrize(
    ("columns", "from_", "projection"),
    [
        ("n", "x", "single"),
        ("n", "x JOIN y USING (id)", "one_sided"),
        ("id", "x JOIN y USING (id)", "one_sided"),
        ("n, y.id", "x JOIN y USING (id)", "one_sided"),
        ("n, m", "x JOIN y USING (id)", "two_sided"),
        ("n, m, x.id", "x JOIN y USING (id)", "full"),
        ("n, m, w", "x JOIN y USING (id) JOIN z USING (id)", "several"),
    ],
)
def test_the_sides_of_a_distinct_count(columns, from_, projection):
    resolved = query(f"COUNT(DISTINCT {columns}) FROM {from_}", XYZ)
    assert resolved.aggregates[0].projection(resolved.graph) == projection


def test_case_between_tables_is_split_by_its_guards():
    (aggregate,) = query("SUM(CASE WHEN x.n > 1 THEN y.m * x.id ELSE 0 END)" + JOINED, XYZ).aggregates
    fails = "CASE WHEN `n` > 1 THEN NULL ELSE 1 END"
    value = "CASE WHEN `n` > 1 THEN `id` END"
    assert aggregate.total == (Term((Factor(0, value), Factor(1, "`m`"))),)
    assert aggregate.presence == (
        Term((Factor(0, value, presence=True), Factor(1, "`m`", presence=True))),
        Term((Factor(0, fails, presence=True),)),
    )


def test_filter_is_a_guard():
    count, total = query(
        "COUNT(*) FILTER (WHERE n > 1), SUM(m) FILTER (WHERE n > 1)" + JOINED, XYZ
    ).aggregates
    holds = "CASE WHEN `n` > 1 THEN 1 END"
    assert count.total == (Term((Factor(0, holds, presence=True),)),)
    assert total.total == (Term((Factor(0, holds, presence=True), Factor(1, "`m`"))),)


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        ("n, COUNT(*) FROM x", "NOT_AGGREGATED", "n"),
        ("x.*, COUNT(*) FROM x", "NOT_AGGREGATED", "x.*"),
        ("n FROM x GROUP BY n", "NOT_AGGREGATED", "n"),
        ("SUM(DISTINCT n) FROM x", "DISTINCT", "SUM(DISTINCT n)"),
        ("log(SUM(n)) FROM x", "AGGREGATE_EXPRESSION", "log(SUM(n))"),
        ("COUNT(*) FROM x GROUP BY ROLLUP (n)", "UNSUPPORTED_CLAUSE", "GROUP BY ROLLUP (n)"),
        ("COUNT(*) FROM x GROUP BY 3", "ORDINAL", "3"),
        ("COUNT(*) FROM x JOIN y USING (id) GROUP BY n + m", "CROSS_EXPRESSION", "n + m"),
        ("COUNT(*) FROM x LIMIT 1 + 1", "LIMIT", "LIMIT 1 + 1"),
        ("COUNT(*) % 2 FROM x", "AGGREGATE_EXPRESSION", "COUNT(*) % 2"),
        ("COALESCE(COUNT(*) > 2, true) FROM x", "AGGREGATE_EXPRESSION", "COALESCE(COUNT(*) > 2, true)"),
        ("(COUNT(*) > 2) = true FROM x", "AGGREGATE_EXPRESSION", "(COUNT(*) > 2) = true"),
        ("SUM(n) OVER () FROM x", "AGGREGATE_EXPRESSION", "SUM(n) OVER ()"),
        ("lower_bound(COUNT(*), 2) FROM x", "BOUND_ARGUMENT", "lower_bound(COUNT(*), 2)"),
        ("SUM(CASE WHEN x.n > y.m THEN 1 END)" + JOINED, "CROSS_EXPRESSION", "x.n > y.m"),
        ("COUNT(DISTINCT n + m)" + JOINED, "CROSS_EXPRESSION", "n + m"),
        ("COUNT(*) AS c FROM x HAVING d > 1", "UNKNOWN_COLUMN", "d"),
        ("COUNT(x.*) FROM x", "NOT_AGGREGATED", "*"),
        ("COUNT(date_trunc(w, current_date())) FROM z", "UNSUPPORTED_FUNCTION", "w"),
        ("COUNT(trunc(current_date(), z.w)) FROM z", "UNSUPPORTED_FUNCTION", "z"),
        ("percentile(n, 0.5) FROM x", "UNSUPPORTED_AGGREGATE", "percentile(n, 0.5)"),
    ],
)  # fmt: skip
def test_refusals(text, code, marked):
    with pytest.raises(SkimqlError) as caught:
        query(text, XYZ)
    assert caught.value.code == f"SKIMQL_{code}", str(caught.value)
    start, end = caught.value.span
    assert caught.value.sql[start:end] == marked
    assert caught.value.hint


@pytest.mark.parametrize("name", FEATURES)
def test_what_the_caller_does_not_know_is_refused_by_name(name):
    text = {
        "COUNT(DISTINCT)": "COUNT(DISTINCT n) FROM x",
        "set expression": "COUNT(DISTINCT id) FROM (SELECT id FROM x UNION SELECT id FROM y)",
        "expression over aggregates": "COUNT(*) / 2 FROM x",
        "bounds in SELECT": "COUNT(*) AS c, lower_bound(c) FROM x",
        "GROUP BY": "COUNT(*) FROM x GROUP BY n",
        "GROUP BY over several tables": "COUNT(*) FROM x JOIN y USING (id) GROUP BY n, m",
        "HAVING": "COUNT(*) FROM x HAVING COUNT(*) > 1",
        "ORDER BY": "COUNT(*) FROM x GROUP BY n ORDER BY n",
        "LIMIT": "COUNT(*) FROM x LIMIT 0",
        "OFFSET": "COUNT(*) FROM x OFFSET 1",
        "cyclic join": "COUNT(*) FROM x a, x b, x c WHERE a.id = b.id AND b.n = c.n AND c.id = a.n "
        "BEHAVIOR 'do_nothing'",
        "cross product": "COUNT(*) FROM x, y",
    }[name]
    statement = parse_statement("SELECT APPROXIMATE " + text)
    with pytest.raises(UnsupportedQuery, match=re.escape(name)):
        resolve(statement, XYZ, known=set(FEATURES) - {name})
