"""`guard` takes names, pairs and conditions of Spark's columns; anything else is refused in our words."""

from __future__ import annotations

import pytest

from skimql import Session, SkimqlError
from skimql.engine.queries.guard import _equalities, _sides


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("(k = k)", [("k", "k")]),
        ("=(k, k)", [("k", "k")]),
        ("((k = k) AND (x = my col))", [("k", "k"), ("x", "my col")]),
        ("(((a = b) AND (c = d)) AND (e = f))", [("a", "b"), ("c", "d"), ("e", "f")]),
        ("and(=(a, b), =(c, d))", [("a", "b"), ("c", "d")]),
        ("(l.k = r.k)", [("l.k", "r.k")]),
    ],
)
def test_conditions_as_spark_prints_them(text, pairs):
    assert _equalities(text, text) == pairs


@pytest.mark.parametrize("text", ["k", "(k < k)", "((a = b) OR (c = d))", "(k <=> k)", ""])
def test_other_conditions_are_refused(text):
    with pytest.raises(SkimqlError, match="is no equality") as fault:
        _equalities(text, text)
    assert fault.value.code == "SKIMQL_GUARD_ON"


def test_which_side_a_name_is_of():
    assert _sides("k", "k", ["k", "x"], ["k", "y"]) == ("k", "k")
    assert _sides("y", "x", ["k", "x"], ["k", "y"]) == ("x", "y")
    assert _sides("l.K", "r.y", ["k", "x"], ["k", "y"]) == ("k", "y")
    for one, other in (("z", "k"), ("k + 1", "k")):
        with pytest.raises(SkimqlError, match="no equality"):
            _sides(one, other, ["k"], ["k"])
    with pytest.raises(SkimqlError, match="both sides have both"):
        _sides("a", "b", ["a", "b"], ["a", "b"])


@pytest.mark.spark
def test_every_way_to_say_the_same(session, spark):
    a = spark.sql("SELECT id AS k, id % 2 AS x FROM range(6)")
    b = spark.sql("SELECT id AS k, id % 2 AS y FROM range(6)")
    ways = [
        "k",
        ["k"],
        [("k", "k")],
        ("k", "k"),
        a.k == b.k,
        b.k == a.k,
        [a.k == b.k, ("x", "y")],
        (a.k == b.k) & (a.x == b.y),
    ]
    assert [session.guard(a, b, on).value for on in ways] == [6] * len(ways)
    for wrong in (
        a.k < b.k,
        a.k,
        3,
        None,
        [],
        [3],
        {"k": "k"},
        "z",
        (a.k == b.k) | (a.x == b.y),
        a.k + 1 == b.k,
        [("a", "b", "c")],
    ):
        with pytest.raises(SkimqlError):
            session.guard(a, b, wrong)
    for left, right, most in ((1, b, None), (a, "b", None), (a, b, "x"), (a, b, True)):
        with pytest.raises(SkimqlError):
            Session(spark).guard(left, right, "k", most)
    with pytest.raises(SkimqlError, match="more than 5"):
        session.guard(a, b, a.k == b.k, most=5)
