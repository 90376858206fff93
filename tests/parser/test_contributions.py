"""How many rows a key has at most, by fan-outs, and what sums are of: on random queries no key has more."""

import math
from collections import Counter

import duckdb
import pytest
from support.sampled_queries import COLUMNS, SCHEMA, Maker, database, rows, run

from skimql.errors import SkimqlError
from skimql.parser.join_graph import Column, TableSchema
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

# k is unique in c, j in d; x is text.
FANS = {"a": {"k": 5, "j": 100}, "b": {"k": 3, "j": 50}, "c": {"k": 1, "j": 20}, "d": {"k": 7, "j": 1}}
TUPLES = 1000
WIDE = {
    name: TableSchema(
        name, (*(Column(c, "bigint") for c in COLUMNS), Column("x", "string"), Column("l", "array<int>"))
    )
    for name in FANS
}


def read(source, item="COUNT(*) AS n", schema=WIDE):
    return resolve_sampled(
        parse_statement(f"SELECT APPROXIMATE {item} FROM {source} USING sampled_query"), schema
    )


def most(source, fans=FANS, nulls=0):
    """The most rows of a key k."""
    query = read(source)

    def fan_out(table, columns, own):
        own_fans = [fans[table].get(c, TUPLES) for c in columns]
        return min(own_fans, default=TUPLES) + (nulls if own else 0)

    way = next(w for w in query.ways if w.name == "k")
    return query.contributions.rows({r.place.start: r.column for r in way.roles}, fan_out)


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        ("a", 5),
        ("a JOIN b ON a.k = b.k", 5 * 3),
        ("a, b, c WHERE a.k = b.k AND b.k = c.k", 5 * 3 * 1),
        # A table beyond the class by what ties it to one before, in any order.
        ("a JOIN b ON a.k = b.k JOIN d ON d.j = a.j", 5 * 3 * 1),
        ("d JOIN a ON d.j = a.j JOIN b ON a.k = b.k", 5 * 3 * 1),
        ("a JOIN b ON a.k = b.k JOIN c ON c.j = a.v JOIN d ON d.j = c.v", 5 * 3 * 20 * 1),
        # Over a column of a table that is not taken yet.
        ("a JOIN b ON a.k = b.k, d, c WHERE d.j = c.j AND c.j = a.v", 5 * 3 * 1 * 20),
        # Nothing ties it, or only what does not make the values the same.
        ("a JOIN b ON a.k = b.k JOIN d ON d.j > a.j", 5 * 3 * 1000),
        ("a JOIN b ON a.k = b.k JOIN d ON d.j <=> a.j", 5 * 3 * 1000),
        ("a JOIN b ON a.k = b.k JOIN d ON d.x = a.j", 5 * 3 * 1000),
        ("a JOIN b ON a.k = b.k JOIN d ON d.j = a.j OR d.j = a.v", 5 * 3 * 1000),
        ("a JOIN b ON a.k = b.k JOIN d ON (d.j = a.j AND d.v = 1) OR (a.j = d.j AND d.v = 2)", 5 * 3),
        # What makes no rows.
        ("a JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM d WHERE d.j = a.j)", 5 * 3),
        ("a LEFT SEMI JOIN b ON a.k = b.k", 5),
        ("a LEFT ANTI JOIN b ON a.k = b.k", 5),
        # Outer joins: a side that may be left out is there once at least.
        ("a LEFT JOIN b ON a.k = b.k", 5 * 3),
        ("a RIGHT JOIN b ON a.k = b.k", 5 * 3),
        ("a JOIN b ON a.k = b.k LEFT JOIN d ON d.j = b.j", 5 * 3),
        ("a RIGHT JOIN (b JOIN c ON b.k = c.k) ON a.k = b.k", 5 * 3 * 1),
        ("a FULL JOIN b ON a.k = b.k", math.inf),
        # Queries in FROM.
        ("(SELECT k, COUNT(*) AS n FROM a GROUP BY k) t JOIN b ON t.k = b.k", 1 * 3),
        ("(SELECT k, j, COUNT(*) AS n FROM a GROUP BY k, j) t JOIN b ON t.k = b.k", 5 * 3),
        (
            "(SELECT k, COALESCE(j, k) AS c, COUNT(*) AS n FROM a GROUP BY k, COALESCE(j, k)) t JOIN b ON t.k = b.k",
            5 * 3,
        ),
        ("(SELECT k, NVL(j, k) AS c, COUNT(*) AS n FROM a GROUP BY ALL) t JOIN b ON t.k = b.k", 5 * 3),
        ("(SELECT DISTINCT k, j FROM a) t JOIN b ON t.k = b.k", 5 * 3),
        ("(SELECT a.k FROM a JOIN d ON d.j = a.j) t JOIN b ON t.k = b.k", 5 * 1 * 3),
        ("(SELECT k FROM a UNION ALL SELECT k FROM b) t", 5 + 3),
        ("(SELECT k FROM a UNION SELECT k FROM b) t", 5 + 3),
        ("(SELECT k FROM a INTERSECT SELECT k FROM b) t", 5),
        ("(SELECT k FROM a EXCEPT SELECT k FROM b) t", 5),
        ("a JOIN b ON a.k = b.k JOIN (SELECT j AS jj, v FROM d) t ON t.jj = a.j", 5 * 3),
        ("a JOIN b ON a.k = b.k JOIN (SELECT j, COUNT(*) AS n FROM a GROUP BY j) t ON t.j = b.j", 5 * 3),
        ("a JOIN b ON a.k = b.k JOIN (SELECT MAX(j) AS j FROM d) t ON t.j > a.j", 5 * 3),
        # What makes rows of one, as many as there are in it.
        ("a JOIN b ON a.k = b.k LATERAL VIEW explode(a.l) t AS e", math.inf),
        ("a JOIN b ON a.k = b.k, LATERAL explode(a.l) AS t(e)", math.inf),
        ("(SELECT k, explode(l) AS e FROM a) t JOIN b ON t.k = b.k", math.inf),
    ],
)
def test_rows_of_a_key_are_at_most_the_product_of_fan_outs(source, rows):
    assert most(source) == rows


def test_tuples_without_a_key_may_be_among_the_rows_of_any():
    assert most("a JOIN b ON a.k = b.k", nulls=10) == 15 * 13


def test_names_of_with_count_wherever_they_are_read():
    text = "WITH w AS (SELECT k, j FROM a) SELECT APPROXIMATE COUNT(*) AS n FROM w x JOIN w y ON x.k = y.k"
    query = resolve_sampled(parse_statement(f"{text} USING sampled_query"), WIDE)
    places = {r.place.start: r.column for r in query.ways[0].roles}
    assert query.contributions.rows(places, lambda table, columns, own: 5.0 if own else 1000.0) == 25
    names = ["w0 AS (SELECT k FROM a)"]
    names += [f"w{n} AS (SELECT x.k FROM w{n - 1} x JOIN w{n - 1} y ON x.k = y.k)" for n in range(1, 11)]
    text = f"WITH {', '.join(names)} SELECT APPROXIMATE COUNT(*) AS n FROM w10"
    query = resolve_sampled(parse_statement(f"{text} USING sampled_query"), WIDE)
    places = {r.place.start: r.column for r in query.ways[0].roles}
    assert query.contributions.rows(places, lambda table, columns, own: 1.0) == math.inf


def test_sums_are_told_over_the_columns_of_tables():
    source = "(SELECT k, v * 2 AS w, COUNT(*) OVER (PARTITION BY k) AS c FROM a) t JOIN b ON t.k = b.k"
    items = "SUM(t.w - b.v) AS s, SUM(t.c) AS c, AVG(b.j) FILTER (WHERE t.w > 1) AS m, COUNT(t.w) AS n"
    sums = read(source, items).contributions.sums
    assert {m: (s.text, s.columns) for m, s in sums.items()} == {
        "SUM(t.w - b.v)": ("(c0 * 2) - c1", (("c0", "a", "v"), ("c1", "b", "v"))),
        "SUM(b.j) FILTER (WHERE t.w > 1)": ("c0", (("c0", "b", "j"),)),
    }


def _fan_outs(seed):
    """What is true of the tables of a seed."""
    tables = rows(seed)

    def fan_out(table, columns, own):
        values = [tuple(row[COLUMNS.index(c)] for c in columns) for row in tables[table]]
        without = sum(v[0] is None for v in values) if own else 0
        counts = Counter(v for v in values if None not in v)
        return (max(counts.values(), default=0) if columns else len(values)) + without

    return fan_out


@pytest.mark.parametrize("part", range(4))
def test_of_random_queries_no_key_has_more_rows(part):
    """Of 240 queries on tables with NULLs; what is bounded is so for every class that the query decomposes over."""
    bounded = tight = 0
    for seed in range(6 * part, 6 * part + 6):
        connection, fan_out = database(seed), _fan_outs(seed)
        for number in range(10):
            try:
                text = Maker(10 * seed + number).query()
                query = resolve_sampled(parse_statement(text), SCHEMA, lambda _: COLUMNS)
            except SkimqlError:
                continue
            place = len(query.group_texts)
            for way in query.ways:
                bound = query.contributions.rows({r.place.start: r.column for r in way.roles}, fan_out)
                if bound == math.inf:
                    continue
                columns = (f"{way.key} AS `__k`", "COUNT(*)")
                try:
                    found = run(connection, query.by_key(way, lambda _: "TRUE", columns, (way.key,)))
                except duckdb.Error:
                    continue
                counts = Counter()
                for row in found:
                    if row[place] is not None:
                        counts[row[place]] += row[place + 1]
                largest = max(counts.values(), default=0)
                assert largest <= bound, (way.name, counts, bound, query.sql)
                bounded += 1
                tight += largest == bound
    assert bounded > 20


def test_columns_of_one_name_are_not_taken_for_one_another():
    pairs = (
        "(SELECT * FROM (SELECT * FROM a JOIN d ON a.j = d.j) t) AS u(k1, j1, v1, x1, l1, k2, j2, v2, x2, l2)"
    )
    sums = read(f"{pairs} JOIN b ON u.k1 = b.k", "SUM(u.v2) AS s, SUM(u.v1) AS t").contributions.sums
    assert sums == {}
    # In NATURAL JOIN the columns that both have come first, in the order of the left side.
    source = "(SELECT * FROM (SELECT k, j, v FROM a) q NATURAL JOIN (SELECT v, k, j AS w FROM c) r) AS u(x, y, z, w)"
    sums = read(f"{source} JOIN b ON u.x = b.k", "SUM(u.y) AS y, SUM(u.z) AS z").contributions.sums
    assert {m: s.columns[0][1:] for m, s in sums.items()} == {"SUM(u.y)": ("a", "v"), "SUM(u.z)": ("a", "j")}
