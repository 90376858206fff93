"""Random supported questions over three small tables and a view, and random contents for them."""

from __future__ import annotations

import random

from hypothesis import strategies as st
from support.schemas import schema, table

TABLES = schema(
    *(table(name, k="int", l="int", m="int") for name in "abc"),
    table("v", k="int", l="int", m="int", view="SELECT k, m AS l, l + 1 AS m FROM a WHERE k > 0"),
)
COLUMNS = ("k", "l", "m")


def contents(data_seed):
    """Rows of a, b and c: eight each over NULL, 0, 1 and 2, so that joins are seldom empty."""
    draw = random.Random(data_seed)
    return [[tuple(draw.choice([None, 0, 1, 1, 2]) for _ in COLUMNS) for _ in range(8)] for _ in "abc"]


@st.composite
def relations(draw, alias):
    """An item of FROM under an alias: a table, a view, or a subquery over one."""
    name = draw(st.sampled_from(["a", "b", "c", "v"]))
    kind = draw(st.sampled_from(["table", "table", "subquery", "renamed", "starred"]))
    if kind == "subquery":
        return f"(SELECT k, l * 2 AS l, m + k AS m FROM {name} WHERE m IS NOT NULL OR l = 1) {alias}"
    if kind == "renamed":
        return f"(SELECT m, k FROM {name}) {alias}(k, l)"
    return f"(SELECT * FROM (SELECT * FROM {name}) q) {alias}" if kind == "starred" else f"{name} {alias}"


@st.composite
def conditions(draw, alias):
    """A condition on one table."""
    column, other = (f"{alias}.{draw(st.sampled_from(['k', 'l']))}" for _ in range(2))
    value = draw(st.integers(0, 2))
    return draw(
        st.sampled_from(
            [
                f"{column} > {value}",
                f"({column} = {value} OR {other} IS NULL)",
                f"{column} BETWEEN {value} AND 2",
                f"NOT ({column} = {value} AND {other} = 1)",
                f"{column} IN (0, {value})",
                f"{value} <= {column}",
                f"{column} <=> {other}",
                f"CASE WHEN {column} > 0 THEN {other} ELSE 1 END = {value}",
                f"{column} IN (SELECT k FROM b WHERE l = {value})",
                f"{column} = {value}",
            ]
        )
    )


@st.composite
def arguments(draw, aliases):
    """An arithmetic expression over the tables, with CASE and constants."""

    def leaf():
        return draw(
            st.sampled_from([f"{draw(st.sampled_from(aliases))}.{c}" for c in ("k", "l", "k", "l")] + ["2"])
        )

    one, two, three = leaf(), leaf(), leaf()
    test = f"{draw(st.sampled_from(aliases))}.k > 0"
    return draw(
        st.sampled_from(
            [
                one,
                f"{one} * {two}",
                f"{one} * (1 - {two}) + {three}",
                f"-({one} + {two}) * {three}",
                f"{one} - {two} - 1",
                f"CASE WHEN {test} THEN {one} * {two} ELSE {three} END",
                f"CASE WHEN {test} THEN {one} WHEN {aliases[0]}.l = 1 THEN {two} END",
                f"IF({test}, {one}, {two})",
            ]
        )
    )


@st.composite
def aggregates(draw, aliases):
    argument = draw(arguments(aliases))
    column, other = (
        f"{draw(st.sampled_from(aliases))}.{draw(st.sampled_from(['k', 'l']))}" for _ in range(2)
    )
    return draw(
        st.sampled_from(
            [
                "COUNT(*)",
                f"COUNT({argument})",
                f"SUM({argument})",
                f"SUM({argument})",
                f"AVG({argument})",
                f"COUNT(DISTINCT {column}, {other})",
                f"COUNT(*) FILTER (WHERE {column} > 0)",
                f"SUM({argument}) FILTER (WHERE {column} = 1)",
            ]
        )
    )


@st.composite
def questions(draw):
    """A SELECT over one to four relations, joined in any style."""
    aliases = [f"t{i}" for i in range(draw(st.sampled_from([1, 2, 2, 3, 3, 4])))]
    text, where = draw(relations(aliases[0])), []
    for i, alias in enumerate(aliases[1:], 1):
        parent = draw(st.sampled_from(aliases[:i]))
        pairs = draw(
            st.lists(
                st.tuples(st.sampled_from(["k", "l"]), st.sampled_from(["k", "l"])), min_size=1, max_size=2
            )
        )
        equal = " AND ".join(f"{parent}.{a} = {alias}.{b}" for a, b in pairs)
        if draw(st.integers(0, 5)) == 0:
            equal = f"({equal} AND {alias}.k = 1 OR ({alias}.l > 0 OR {alias}.k IS NULL) AND {equal})"
        style = draw(st.sampled_from([",", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]))
        item = draw(relations(alias))
        if style in (",", "CROSS JOIN"):
            # A comma before a JOIN would hide the tables before it from ON in DuckDB, not in Spark.
            text += f" CROSS JOIN {item}"
            where.append(equal)
        else:
            text += f" {style} {item} ON {equal}"
            if style != "JOIN":
                drops = [f"{parent}.k >= 0", f"{alias}.{draw(st.sampled_from(['k', 'l']))} IS NOT NULL"]
                where += draw(st.sampled_from([drops, drops, drops[:1], drops[1:], [f"NOT {alias}.l = 2"]]))
    if len(aliases) > 2 and draw(st.booleans()):
        where.append(f"{aliases[0]}.k = {aliases[-1]}.{draw(st.sampled_from(['k', 'l']))}")
    where += [draw(conditions(draw(st.sampled_from(aliases)))) for _ in range(draw(st.integers(0, 2)))]
    items = [draw(aggregates(aliases)) for _ in range(4)]
    group = draw(st.sampled_from(["", f"{draw(st.sampled_from(aliases))}.l"]))
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {', '.join([group] * bool(group) + items)} FROM {text}{condition}" + (
        f" GROUP BY {group}" if group else ""
    )
