"""Queries answered from kept sketches: which fit, which are refused, and that no Spark is started for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.kept import kept, remember

from skimql import CorruptSketch, EnvironmentFault, IncompatibleSketches, Session, SkimqlError
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.lookup import MaterializedLookup
from skimql.engine.materialized.matching import Asked, reuse
from skimql.engine.sources.environment import Circumstances
from skimql.engine.spark.own import OwnSpark
from skimql.parser.statement import parse_statement

RNG = np.random.default_rng(7)
ORDERS, LINES = np.arange(400), RNG.integers(0, 400, 1500)
PRICES = RNG.integers(1, 100, 1500)
COUNT = "SELECT APPROXIMATE COUNT(*) AS n FROM orders o JOIN lines l ON o.id = l.oid"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """Any use of Spark fails, also where other tests have a session running."""

    def refuse(*_):
        pytest.fail("Spark was asked for")

    monkeypatch.setattr(Session, "spark", property(refuse))
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)


def orders(name="s_orders", **changes):
    return kept(name, "orders", {"id": ORDERS}, **{"buckets": 512, **changes})


def lines(name="s_lines", **changes):
    return kept(
        name,
        "lines",
        {"oid": LINES},
        **{"classes": ["id"], "summed": ("price", PRICES), "buckets": 512, **changes},
    )


def session(*sketches, **settings):
    return Session(catalog=remember(Catalog(), *sketches), **settings)


def test_sketches_that_fit_answer_exactly_while_they_are_key_maps():
    answer = session(orders(), lines()).sql(
        "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s, AVG(l.price) AS a, COUNT(l.price) AS c"
        " FROM orders o JOIN lines l ON o.id = l.oid"
    )
    assert [c.value for c in answer.rows[0]] == [1500, PRICES.sum(), PRICES.mean(), 1500]
    assert any("s_orders (as of 2026-11-28T00:00:00Z), s_lines" in n for n in answer.notes)


@pytest.mark.parametrize("sparse", [(True, False), (False, True), (False, False)])
def test_counters_give_the_estimate_of_a_query_that_builds_them(sparse):
    from skimql.sketches.joins.estimate import join_estimate

    a, b = orders(sparse=sparse[0]), lines(sparse=sparse[1])
    answer = session(a, b).sql(COUNT)
    mine = join_estimate([a.built[0].sketch, b.built[0].sketch], [(0, 1, 0, 0)], 0.95, 0)
    assert (answer.value, answer.low, answer.high) == (mine.value, mine.low, mine.high)
    assert answer.low <= 1500 <= answer.high


def test_a_self_join_reads_one_sketch_twice():
    answer = session(lines()).sql("SELECT APPROXIMATE COUNT(*) FROM lines a JOIN lines b ON a.oid = b.oid")
    assert answer.value == (np.bincount(LINES) ** 2).sum()


def test_attributes_may_stand_in_another_order_than_in_the_query():
    """A sketch on (b, a) in a chain x - t - y that reaches a first; as key map and as counters."""
    a, b = RNG.integers(0, 30, 200), RNG.integers(0, 30, 200)
    truth = int((np.bincount(range(30))[a] * np.bincount(b, minlength=30)[b]).sum())
    sql = "SELECT APPROXIMATE COUNT(*) FROM x JOIN t ON x.a = t.a JOIN t2 ON t.b = t2.b"
    for sparse in (True, False):
        one = kept("one", "x", {"a": range(30)}, sparse=sparse, buckets=4096)
        two = kept("two", "t", {"b": b, "a": a}, sparse=sparse, buckets=4096)
        three = kept("three", "t2", {"b": b}, sparse=sparse, buckets=4096)
        answer = session(one, two, three).sql(sql)
        assert answer.low <= truth <= answer.high
        assert not sparse or answer.value == truth
        assert answer.high - answer.low < truth


UNLIKE = [
    ({"seed": 2}, ("sketch s_orders of seed 1", "sketch s_lines of seed 2")),
    (
        {"buckets": 256},
        ("sketch s_orders of 11 rows x 512 buckets", "sketch s_lines of 11 rows x 256 buckets"),
    ),
    ({"rows": 13}, ("sketch s_orders of 11 rows x 512 buckets", "sketch s_lines of 13 rows x 512 buckets")),
    ({"family": "polynomial61"}, ("s_orders of tabulation(seed=", "s_lines of polynomial61(seed=")),
]


@pytest.mark.parametrize(("changes", "said"), UNLIKE)
def test_counters_that_cannot_be_joined_are_told_by_name_and_the_query_is_planned_anew(changes, said):
    """Seeds, sizes and hash functions: never a number, and no refusal either but where they are asked for."""
    asked = session(orders(sparse=False), lines(sparse=False, **changes))
    for text in (
        COUNT,
        f"{COUNT} OPTIONS (sparse = false)",
        f"{COUNT} SIZE 1 MB",
        f"{COUNT} ERROR WITHIN 5%",
    ):
        with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
            asked.sql(text)
        select = parse_statement(text)
        (note,) = MaterializedLookup(asked.context).passed_over(
            select, asked._resolved(select), asked.settings
        )
        assert note.startswith("not from kept sketches: ")
        assert all(word in note for word in said)


@pytest.mark.parametrize(("changes", "said"), UNLIKE)
def test_hash_sketches_that_are_asked_for_and_do_not_fit_are_refused_by_name(changes, said):
    with pytest.raises(IncompatibleSketches) as caught:
        session(orders(sparse=False), lines(sparse=False, **changes)).sql(f"{COUNT} USING hash")
    assert caught.value.code == "SKIMQL_INCOMPATIBLE_SKETCHES"
    assert all(word in caught.value.message for word in said)
    assert ".parquet" in caught.value.message
    assert caught.value.span is not None
    assert "CREATE OR REPLACE SKETCH" in caught.value.hint
    assert "leave USING out" in caught.value.hint


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("changes", [changes for changes, _ in UNLIKE])
def test_an_exact_map_is_joined_whatever_its_size_seed_and_family(changes, first):
    """Its keys are all there: with another map exactly, with counters by their hash functions."""
    assert session(orders(), lines(**changes)).sql(COUNT).value == 1500
    answer = session(orders(sparse=not first), lines(sparse=first, **changes)).sql(COUNT)
    like = {} if first else changes
    plain = session(orders(sparse=False, **like), lines(sparse=False, **like)).sql(COUNT)
    assert (answer.value, answer.low, answer.high) == (plain.value, plain.low, plain.high)


def test_what_the_cache_kept_is_passed_over_in_silence():
    """Nobody made these two for one another: the query builds its own."""
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        session(orders(sparse=False), lines(seed=2, made_by="cache", sparse=False)).sql(COUNT)
    assert session(orders(), lines("cached", seed=2, made_by="cache"), lines()).sql(COUNT).value == 1500


def test_an_empty_sketch_is_joined_with_any():
    """Kept of no tuples: it joins with nothing."""
    for changes in ({"buckets": 64, "rows": 7}, {"seed": 9}):
        nothing = kept("s_lines", "lines", {"oid": []}, classes=["id"], **changes)
        assert session(orders(sparse=False), nothing).sql(COUNT).value == 0


def test_among_several_the_ones_that_fit_are_found():
    several = orders("old", seed=5, sparse=False), lines("other", buckets=64), orders(), lines()
    chosen = session(*several).sql(COUNT)
    assert chosen.value == 1500
    assert "s_orders" in chosen.notes[0]
    assert "s_lines" in chosen.notes[0]


@pytest.mark.parametrize(
    "other",
    [
        lines(condition="`price` > 5"),
        kept("s_lines", "lines2", {"oid": LINES}, classes=["id"], buckets=512),
        kept("s_lines", "lines", {"oid": LINES, "price": PRICES}, classes=["id", "price"], buckets=512),
        lines(classes=["oid"]),
        lines(ansi=False),
        lines(zoned=True, time_zone="Asia/Tokyo"),
    ],
    ids=["filter", "table", "attributes", "class", "ANSI mode", "time zone"],
)
def test_what_does_not_fit_is_not_used(other):
    """Then something must be built, for which these tests have no Spark."""
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        session(orders(), other).sql(COUNT)


def test_a_time_zone_does_not_matter_to_plain_keys():
    assert session(orders(), lines(time_zone="Asia/Tokyo")).sql(COUNT).value == 1500


def test_the_filter_must_be_the_same_in_meaning_as_the_query_writes_it():
    some = PRICES > 50
    sketch = kept("s_lines", "lines", {"oid": LINES[some]}, classes=["id"], buckets=512, condition="`price` > 50",
                  columns=lines().head.columns)  # fmt: skip
    asked = session(orders(), sketch)
    assert asked.sql(f"{COUNT} WHERE l.price > 50").value == some.sum()
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        asked.sql(COUNT)


def test_what_the_statement_fixes_is_kept_to():
    asked = session(orders(), lines())
    assert asked.sql(f"{COUNT} USING hash SEED 1").value == 1500
    assert asked.sql(f"{COUNT} OPTIONS (buckets = 512, rows = 11)").value == 1500
    assert asked.sql(f"{COUNT} SIZE 64 KB").value == 1500
    for clause in ("SEED 2", "OPTIONS (buckets = 64)", "OPTIONS (sparse = false)", "SIZE 2 KB", "USING agms"):
        with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
            asked.sql(f"{COUNT} {clause}")


def test_two_edges_of_one_query_are_not_put_in_one_class():
    """Both ends of the chain x - m - y are kept under class id: only one of them may be used."""
    one, two = kept("x", "x", {"a": [1]}, classes=["id"]), kept("y", "y", {"b": [1]}, classes=["id"])
    middle = kept("m", "m", {"a": [1, 2], "b": [1, 2]})
    asked = session(one, middle, two)
    select = parse_statement("SELECT APPROXIMATE COUNT(*) FROM x JOIN m ON x.a = m.a JOIN y ON m.b = y.b")
    query = asked._resolved(select)
    found = reuse(query, [one.head, two.head], Asked(), Circumstances(True, "UTC"))
    assert len(found.materialized) == 1
    assert len({e.class_name for e in found.plan.edges}) == 2
    assert len(found.missing) == 2


def test_a_damaged_sketch_is_named_and_the_others_answer(tmp_path):
    catalog = remember(Catalog(tmp_path), orders(), lines())
    file = tmp_path / catalog.entry("s_orders").file
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    asked = Session(catalog=tmp_path)
    with pytest.raises(CorruptSketch, match=file.name):
        asked.sql(COUNT)
    assert asked.sql("SELECT APPROXIMATE COUNT(*) FROM lines a JOIN lines b ON a.oid = b.oid").value > 0


def test_the_interval_covers_over_seeds_what_it_covers_when_built_anew():
    """30 seeds at 64 buckets, 95 % intervals: more than `most_misses` misses have a chance below 1e-6."""
    from support.theory import most_misses

    misses = 0
    for seed in range(30):
        answer = session(
            orders(seed=seed, buckets=64, sparse=False), lines(seed=seed, buckets=64, sparse=False)
        ).sql(COUNT)
        misses += not answer.low <= 1500 <= answer.high
    assert misses <= most_misses(30, 0.05)


def test_explain_and_show_and_describe_need_no_spark():
    asked = session(orders(), lines())
    assert "from the kept sketches s_orders, s_lines" in asked.sql(f"EXPLAIN {COUNT}").value
    shown = asked.sql("SHOW SKETCHES").records()
    assert [(r["sketch"], r["table"], r["tuples"], r["weight"]) for r in shown] == [
        ("s_lines", "lines", 1500, "SUM(price)"),
        ("s_orders", "orders", 400, None),
    ]
    described = dict(asked.sql("DESCRIBE SKETCH EXTENDED s_lines").rows)
    assert described["class id"] == "oid bigint"
    assert described["family of id"].startswith("tabulation(seed=")
    assert described["SHA-256"].endswith("verified")


def test_a_miss_of_the_asked_error_is_said_where_nothing_better_can_be_had(monkeypatch):
    """Without Java the kept sketches answer, and say that they miss; told what to do then, they do it at once."""

    def no_java(*_):
        raise EnvironmentFault("there is no Java", "SKIMQL_NO_JAVA")

    monkeypatch.setattr(Session, "spark", property(no_java))
    counters = {"sparse": False, "buckets": 64}
    asked = session(orders(**counters), lines(**counters))
    answer = asked.sql(f"{COUNT} ERROR WITHIN 0.1%")
    assert answer.value == asked.sql(COUNT).value
    assert any("nothing better without Spark" in n for n in answer.notes)
    assert any("asked for 0.001 relative error" in n for n in answer.notes)
    with pytest.raises(SkimqlError, match="asked for"):
        asked.sql(f"{COUNT} WITH ERROR 0.001 BEHAVIOR 'strict'")


def test_the_answer_of_nothing_is_null():
    empty = kept("s_lines", "lines", {"oid": []}, classes=["id"], summed=("price", []), buckets=512)
    answer = session(orders(), empty).sql(
        "SELECT APPROXIMATE SUM(l.price) FROM orders o JOIN lines l ON o.id = l.oid"
    )
    assert math.isnan(answer.rows[0][0].value)


def test_a_group_query_is_not_answered_from_sketches_of_all():
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        session(orders(), lines()).sql(f"{COUNT} GROUP BY l.price")


def test_whatever_is_kept_of_a_chain_answers_right_or_not_at_all():
    """Maps and counters of any sizes, seeds and families, in any order of their attributes: no number but a right one."""
    draw = np.random.default_rng(5)
    sql = "SELECT APPROXIMATE SUM(x.v), COUNT(*) FROM x JOIN m ON x.a = m.a JOIN y ON m.b = y.b"
    outcomes, estimates, misses = set(), 0, 0

    def form():
        return {
            "seed": int(draw.choice([1, 1, 2])),
            "rows": int(draw.choice([11, 11, 9])),
            "buckets": int(draw.choice([64, 64, 128])),
            "sparse": bool(draw.random() < 0.6),
            "family": str(draw.choice(["tabulation", "tabulation", "polynomial61"])),
        }

    for _ in range(40):
        xa, xv = draw.integers(0, 30, 80), draw.integers(-5, 50, 80)
        columns = {"a": draw.integers(0, 30, 90), "b": draw.integers(0, 20, 90)}
        yb = draw.integers(0, 20, 60)
        turned = columns if draw.random() < 0.5 else {"b": columns["b"], "a": columns["a"]}
        own = (
            kept("sx", "x", {"a": xa}, summed=("v", xv), **form()),
            kept("sm", "m", turned, **form()),
            kept("sy", "y", {"b": yb}, **form()),
        )
        per_key = np.zeros(30)
        np.add.at(per_key, columns["a"], np.bincount(yb, minlength=20)[columns["b"]])
        try:
            cells = session(*own).sql(sql).rows[0]
        except pytest.fail.Exception:
            outcomes.add("passed over")
            continue
        for cell, truth in zip(cells, ((per_key[xa] * xv).sum(), per_key[xa].sum()), strict=True):
            outcomes.add("exact" if cell.exact else "estimated")
            assert not cell.exact or cell.value == truth
            estimates += 1
            misses += not cell.low <= truth <= cell.high
    assert outcomes == {"exact", "estimated", "passed over"}
    assert misses <= 0.1 * estimates
