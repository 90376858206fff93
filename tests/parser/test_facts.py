"""Constants carried along equalities, and filters that exclude one another."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.questions import edges, filters, query
from support.schemas import XYZ, schema, table

from skimql.errors import UnsupportedQuery


def test_a_constant_is_carried_to_every_key_of_its_class():
    resolved = query("COUNT(*) FROM x a, y b, z c WHERE a.id = b.id AND b.id = c.id AND b.id = 5", XYZ)
    assert filters(resolved) == {"a": "`id` = 5", "b": "`id` = 5", "c": "`id` = 5"}


def test_a_constant_is_not_carried_to_another_type():
    tables = schema(table("a", k="int"), table("b", k="string"))
    assert filters(query("COUNT(*) FROM a, b WHERE a.k = b.k AND b.k = '05'", tables)) == {"b": "`k` = '05'"}


def test_one_constant_on_both_sides_joins_the_tables():
    resolved = query(
        "COUNT(*) FROM x, y, z WHERE x.id = 5 AND 5 = y.m AND y.id = z.id",
        schema(table("x", id="int"), table("y", id="int", m="bigint"), table("z", id="int")),
    )
    assert edges(resolved) == [("x", ("`id`",), "y", ("`m`",)), ("y", ("`id`",), "z", ("`id`",))]
    with pytest.raises(UnsupportedQuery):
        query("COUNT(*) FROM x, z WHERE x.id = 5 AND z.w = '5'", XYZ)


@pytest.mark.parametrize(
    "where",
    [
        "n = 3 AND n = 2",
        "n > 3 AND n < 3",
        "n >= 3 AND 3 > n",
        "n BETWEEN 5 AND 4",
        "n IN (1, 2) AND n > 2",
        "n = -1 AND n >= 0",
        "1 = 0",
        "false",
        "NULL",
        "'a' = 'b'",
        "n = 3 AND (n) = 4",
    ],
)
def test_contradictions_are_found(where):
    assert query(f"COUNT(*) FROM x WHERE {where}", XYZ).empty


def test_contradictions_through_a_join():
    assert query("COUNT(*) FROM x JOIN y USING (id) WHERE x.id = 1 AND y.id = 2", XYZ).empty


@pytest.mark.parametrize(
    "where",
    [
        "n >= 3 AND n <= 3",
        "n = 3 AND n IN (3, 4)",
        "n = 1.5",
        "w = 'a' AND w = 'A'",
        "n > 1 OR n < 0",
        "w = 3 AND w = 4",
        "n = 1 AND n = 2e0",
        "1e0 = 2e0",
    ],
)
def test_what_is_not_plainly_contradictory_is_left_to_spark(where):
    text = f"COUNT(*) FROM x JOIN z USING (id) WHERE {where}"
    assert bool(query(text, XYZ).empty) == (where == "w = 'a' AND w = 'A'")


OPERATORS = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(list(OPERATORS)), st.integers(-2, 2), st.booleans()), min_size=1, max_size=4
    )
)
def test_a_contradiction_is_never_claimed_of_conditions_that_a_number_meets(conditions):
    mirrored = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
    texts = [f"{v} {mirrored[o]} n" if turned else f"n {o} {v}" for o, v, turned in conditions]
    empty = query("COUNT(*) FROM x WHERE " + " AND ".join(texts), XYZ).empty
    # Halves stand for the numbers between; the finite range covers every ordering of the bounds.
    met = [h for h in range(-6, 7) if all(OPERATORS[o](h / 2, v) for o, v, _ in conditions)]
    assert bool(empty) == (not met)
