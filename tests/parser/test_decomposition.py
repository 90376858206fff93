"""Over which join classes a query decomposes, which tables are filtered, and why others do not: the rule, and its traps."""

import pytest
from support.sampled_queries import SCHEMA, Maker, database, differences

from skimql.errors import SkimqlError, UnknownName, UnsupportedQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM "


def read(text):
    return resolve_sampled(parse_statement(f"{text} USING sampled_query"), SCHEMA)


def roles(text, number=0):
    """The filtered tables of the first class, with their columns, in the order in which they stand."""
    return [f"{r.table}.{r.column}" for r in read(text).ways[number].roles]


DECOMPOSE = {
    "one table": ("a", "a.k"),
    "inner join": ("a JOIN b ON a.k = b.j", "a.k b.j"),
    "comma and WHERE": ("a, b WHERE a.k = b.k AND a.v < b.v", "a.k b.k"),
    "a condition of any form beside it": ("a JOIN b ON a.k = b.k AND (a.v = 1 OR b.v LIKE '1')", "a.k b.k"),
    "an equality in every branch of OR": (
        "a, b WHERE (a.k = b.k AND a.v = 1) OR (b.k = a.k AND b.v = 2)",
        "a.k b.k",
    ),
    "a cycle": ("a, b, c WHERE a.k = b.k AND b.k = c.k AND a.j = c.j", "a.k b.k c.k"),
    "one table in two roles": ("a x JOIN a y ON x.k = y.j", "a.k a.j"),
    "a table without the key": ("a JOIN b ON a.k = b.k JOIN c ON a.j = c.j", "a.k b.k"),
    "LEFT JOIN": ("a LEFT JOIN b ON a.k = b.k", "a.k b.k"),
    "LEFT JOIN of what has no key": ("a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j", "a.k c.k"),
    "a padded key that an equality asks for": (
        "a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k",
        "a.k b.k c.k",
    ),
    "RIGHT JOIN": ("a RIGHT JOIN b ON a.k = b.k", "a.k b.k"),
    "FULL JOIN": ("a FULL JOIN b ON a.k = b.k", "a.k b.k"),
    "FULL JOIN twice by USING": ("a FULL JOIN b USING (k) FULL JOIN c USING (k)", "a.k b.k c.k"),
    "SEMI JOIN": ("a LEFT SEMI JOIN b ON a.k = b.k", "a.k b.k"),
    "ANTI JOIN": ("a LEFT ANTI JOIN b ON a.k <=> b.k", "a.k b.k"),
    "EXISTS": ("a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > a.v)", "a.k b.k"),
    "NOT EXISTS": ("a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "a.k b.k"),
    "IN": ("a WHERE a.k IN (SELECT b.k FROM b)", "a.k b.k"),
    "IN of a value is decided on all of it": ("a WHERE a.j + 0 IN (SELECT b.v FROM b)", "a.k"),
    "IN beneath NOT is decided on all of it": ("a WHERE NOT (a.k IN (SELECT b.k FROM b))", "a.k"),
    "NOT IN is decided on all of it": ("a WHERE a.k NOT IN (SELECT b.k FROM b)", "a.k"),
    "NOT IN that is correlated": ("a WHERE a.v NOT IN (SELECT b.v FROM b WHERE b.k = a.k)", "a.k b.k"),
    "a scalar that is correlated": ("a WHERE a.v > (SELECT AVG(b.v) FROM b WHERE b.k = a.k)", "a.k b.k"),
    "a scalar that is not runs on all": (
        "a JOIN c ON a.k = c.k WHERE a.v > (SELECT AVG(b.v) FROM b)",
        "a.k c.k",
    ),
    "a LIMIT inside what is correlated": (
        "a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k LIMIT 1)",
        "a.k b.k",
    ),
    "groups that have the key": (
        "(SELECT k, COUNT(*) AS n FROM a GROUP BY k, j) t JOIN b ON t.k = b.k",
        "a.k b.k",
    ),
    "groups by COALESCE after FULL": (
        "(SELECT coalesce(a.k, b.k) AS k FROM a FULL JOIN b ON a.k = b.k GROUP BY 1) t JOIN c ON t.k = c.k",
        "a.k b.k c.k",
    ),
    "DISTINCT": ("(SELECT DISTINCT k, v FROM a) t JOIN b ON t.k = b.k", "a.k b.k"),
    "a window by the key": (
        "(SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM a) t JOIN b ON t.k = b.k",
        "a.k b.k",
    ),
    "QUALIFY by the key": (
        "(SELECT k, v FROM a QUALIFY RANK() OVER (PARTITION BY k ORDER BY v) = 1) t JOIN b ON t.k = b.k",
        "a.k b.k",
    ),
    "QUALIFY by another column is left whole": (
        "(SELECT k, v FROM a QUALIFY RANK() OVER (PARTITION BY j ORDER BY v) = 1) t JOIN b ON t.k = b.k",
        "b.k",
    ),
    "a window by its name": (
        "(SELECT k, v, RANK() OVER (w) AS r FROM a WINDOW w AS (PARTITION BY k ORDER BY v)) t JOIN b ON t.k = b.k",
        "a.k b.k",
    ),
    "a window by the name of one that looks at all keys": (
        "(SELECT k, RANK() OVER w AS r FROM a WINDOW w AS (ORDER BY v)) t JOIN b ON t.k = b.k JOIN c ON b.k = c.k",
        "b.k c.k",
    ),
    "LATERAL VIEW": ("a JOIN b ON a.k = b.k LATERAL VIEW OUTER explode(sequence(1, a.v)) t AS x", "a.k b.k"),
    "LATERAL of a function": ("a, LATERAL explode(sequence(1, a.v)) t(x) JOIN b ON a.k = b.k", "a.k b.k"),
    "LATERAL that is correlated": (
        "a, LATERAL (SELECT COUNT(*) AS n FROM b WHERE b.k = a.k) t JOIN c ON a.k = c.k",
        "a.k b.k c.k",
    ),
    "LEFT JOIN LATERAL of the first rows of each": (
        "a LEFT JOIN LATERAL (SELECT b.v FROM b WHERE b.k = a.k ORDER BY b.v LIMIT 2) t ON t.v > 1",
        "a.k b.k",
    ),
    "LATERAL on another column is left whole": (
        "a JOIN c ON a.k = c.k, LATERAL (SELECT MAX(b.v) AS m FROM b WHERE b.v < a.v) t",
        "a.k c.k",
    ),
    "a PIVOT beside a join is left whole": (
        "(SELECT * FROM (SELECT k, j, v FROM a) PIVOT (SUM(v) FOR j IN (1 AS x))) t JOIN b ON t.k = b.k JOIN c ON b.k = c.k",
        "b.k c.k",
    ),
    "a LIMIT beside a join is left whole": (
        "(SELECT k FROM a ORDER BY k LIMIT 3) t JOIN b ON t.k = b.k",
        "b.k",
    ),
    "a total beside a join is left whole": (
        "b JOIN c ON b.k = c.k, (SELECT MAX(v) AS m FROM a) t",
        "b.k c.k",
    ),
    "UNION ALL": ("(SELECT k, v FROM a UNION ALL SELECT j, v FROM b) t", "a.k b.j"),
    "INTERSECT": ("(SELECT k FROM a INTERSECT SELECT k FROM b) t", "a.k b.k"),
    "EXCEPT from all of the other": ("(SELECT k, v FROM a EXCEPT SELECT k, 1 FROM b LIMIT 2) t, c", "c.k"),
    "a CTE used twice": ("WITH w AS (SELECT k, v FROM a) ", "a.k"),
}


@pytest.mark.parametrize("name", DECOMPOSE)
def test_what_decomposes_and_which_tables_are_filtered(name):
    source, expected = DECOMPOSE[name]
    text = SELECT + source
    if source.startswith("WITH"):
        text = f"{source} SELECT APPROXIMATE COUNT(*) AS n FROM w x JOIN w y ON x.k = y.k"
    assert " ".join(roles(text)) == expected


REFUSED = {
    "(SELECT k FROM a LIMIT 3) t": ("the LIMIT inside looks at all keys", "LIMIT 3"),
    "(SELECT MAX(v) AS v FROM a) t": ("the aggregate inside looks at rows of all keys", "MAX(v)"),
    "(SELECT j % 2, COUNT(*) FROM a GROUP BY j % 2) t": (
        "its groups have rows of all keys",
        "GROUP BY j % 2",
    ),
    "(SELECT DISTINCT v + 1 FROM a) t": ("DISTINCT looks at all keys", "SELECT"),
    "(SELECT SUM(v) OVER (ORDER BY k) FROM a) t": (
        "the window looks at all keys",
        "SUM(v) OVER (ORDER BY k)",
    ),
    "a RIGHT JOIN range(5) t ON a.k = t.id": ("the side that RIGHT JOIN keeps has no key", None),
    "a FULL JOIN b ON a.v < b.v": ("FULL JOIN keeps rows of both sides", "FULL JOIN b ON a.v < b.v"),
    "(SELECT k + 1 FROM a UNION SELECT k + 1 FROM b) t": (
        "one side of UNION has no key",
        "SELECT k + 1 FROM a UNION SELECT k + 1 FROM b",
    ),
    "a TABLESAMPLE (5 ROWS)": ("TABLESAMPLE draws from all rows", "a TABLESAMPLE (5 ROWS)"),
    "range(5)": ("no table has a column", None),
    "a UNPIVOT (x FOR y IN (j, v)) t": (
        "PIVOT and UNPIVOT are not read",
        "a UNPIVOT (x FOR y IN (j, v)) t",
    ),
    "a WHERE rand() < 0.5": ("rand() is different at every call", "rand"),
}


@pytest.mark.parametrize("source", REFUSED)
def test_what_does_not_decompose_is_refused_at_its_place(source):
    reason, place = REFUSED[source]
    with pytest.raises(UnsupportedQuery) as raised:
        read(SELECT + source)
    fault = raised.value
    assert reason in fault.message
    assert fault.hint == "EXACT SELECT ..."
    if place is not None:
        assert (SELECT + source)[slice(*fault.span)] == place


def test_columns_that_spark_alone_knows_are_not_called_unknown():
    for source in (
        "(SELECT * FROM (SELECT k, j, v FROM a) PIVOT (SUM(v) FOR j IN (1 AS x))) t JOIN b ON b.k = t.k",
        "a PIVOT (SUM(v) FOR j IN (1 AS x)) t JOIN b ON b.k = t.k",
        "range(5) t JOIN b ON b.k = t.x",
    ):
        with pytest.raises(UnsupportedQuery) as raised:
            read(f"SELECT APPROXIMATE SUM(t.x) AS s FROM {source}")
        assert (raised.value.code, raised.value.hint) == ("SKIMQL_NOT_DECOMPOSED", "EXACT SELECT ...")
    with pytest.raises(UnknownName, match="no column 'x' in b"):
        read("SELECT APPROXIMATE SUM(b.x) AS s FROM a JOIN b ON b.k = a.k")


def test_a_name_of_with_that_is_read_as_a_whole_is_refused_where_that_is():
    text = "WITH t AS (SELECT j, SUM(v) AS s FROM a GROUP BY j) SELECT APPROXIMATE COUNT(*) AS n FROM t "
    text += "WHERE t.s > (SELECT AVG(s) FROM t)"
    with pytest.raises(
        UnsupportedQuery, match="t is read here as a whole, and so wherever else it stands"
    ) as raised:
        read(text)
    assert text[slice(*raised.value.span)] == "(SELECT AVG(s) FROM t)"


def test_a_side_that_is_kept_whole_decides_over_all_keys():
    with pytest.raises(UnsupportedQuery, match="the side that LEFT JOIN keeps has no key") as raised:
        read(f"{SELECT}range(5) t LEFT JOIN b ON t.id = b.k")
    assert raised.value.code == "SKIMQL_NOT_DECOMPOSED"
    # One that has keys of its own is sampled by these, and the other is read whole.
    assert roles(f"{SELECT}a LEFT JOIN b ON a.v < b.v") == ["a.k"]


def test_the_union_of_the_results_of_all_keys_is_the_result():
    """Random queries on random tables with NULLs; thousands: ``python tests/support/sampled_queries.py``."""
    held = 0
    for seed in range(5):
        connection = database(seed)
        for part in range(10):
            try:
                wrong = differences(connection, Maker(10 * seed + part).query())
            except SkimqlError:
                continue
            assert not wrong, wrong[0]
            held += 1
    assert held > 25
