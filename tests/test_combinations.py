"""Random questions with random clauses, in memory and on Spark: exact where said so, covered as promised, refused well.

`benchmarks.combinations` runs thousands of them.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from support.quick import as_spark_has_it
from support.theory import most_misses

from skimql import Answer, Estimate
from skimql.sketches.intervals.interval import exact

ROOT = Path(__file__).parents[1]
# 1667: a sample of all keys that is taken again, smaller, to fit a size.
SEEDS = (*range(110), 1667)
# Of the seeds 100 to 299 those that take long are left out.
ON_SPARK = sorted(
    {*range(100, 300)}
    - {100, 105, 110, 115, 117, 120, 127, 131, 132, 134, 135, 137, 140, 141, 148, 150, 151, 157, 161, 165}
    - {170, 171, 172, 173, 175, 185, 191, 200, 226, 250, 252, 256, 257, 260, 267, 271, 272, 273, 275, 276}
    - {277, 282, 284, 286, 287, 292, 293, 295, 297, 298}
)


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def combinations(benchmarks):
    from benchmarks import combinations

    return combinations


@pytest.fixture
def on_spark(benchmarks):
    from benchmarks import combinations_on_spark

    return combinations_on_spark


def test_every_combination_is_answered_as_promised_or_refused(combinations):
    records = [combinations.record_of(seed) for seed in SEEDS]
    assert not [(r["seed"], r["sql"], r["fault"]) for r in records if r["fault"]]
    answered = [r for r in records if r["outcome"] == "answered"]
    assert len(answered) > len(SEEDS) / 2
    assert len({r["method"] for r in answered}) >= 8
    # The values of one question come from one draw: they are one trial.
    tried = [r for r in answered if r["estimated"]]
    assert sum(r["missed"] > 0 for r in tried) <= most_misses(len(tried), 0.05, 1e-6)


def test_a_wrong_value_is_seen(combinations, monkeypatch):
    from skimql.sketches.joins import estimate

    known = estimate.known_sum
    monkeypatch.setattr("skimql.engine.results.estimator.known_sum", lambda *a: (known(*a) or 0) + 1)
    assert any(combinations.record_of(seed)["fault"] for seed in range(12))


def test_every_combination_through_a_session_is_as_spark_has_it_or_refused(spark, on_spark):
    """Each block in a thread and a Spark session of its own: near the run's end the second core is free."""

    def records_of(block):
        apart = spark.newSession()
        if block == 1:
            as_spark_has_it(apart)
        runner = on_spark.Runner(apart)
        return [runner.record_of(seed) for seed in ON_SPARK if seed // on_spark.BLOCK == block]

    with ThreadPoolExecutor(2) as pool:
        records = [record for found in pool.map(records_of, (1, 2)) for record in found]
    assert len(records) == len(ON_SPARK) == 150
    assert not [(r["seed"], r["sql"], r["fault"]) for r in records if r["fault"]]
    answered = [r for r in records if r["outcome"] == "answered"]
    assert len(answered) > len(ON_SPARK) / 2
    assert len({r["method"] for r in answered}) >= 8
    assert {(r["kept"], r["route"]) for r in answered} >= {
        ("kept", "auto"),
        ("cache", "auto"),
        ("nothing", "jvm"),
    }
    tried = [r for r in answered if r.get("estimated")]
    assert sum(r["missed"] > 0 for r in tried) <= most_misses(len(tried), 0.05, 1e-6)


# Questions in the forms that people write, of one block, that do not take long.
FORMS = (30012, 30014, 30036, 30058, 30084, 30086)


def test_forms_that_people_write_are_on_all_keys_of_a_sample_as_spark_has_them(spark, on_spark):
    runner = on_spark.Runner(spark.newSession())
    records = [runner.record_of(seed) for seed in FORMS]
    assert not [(r["seed"], r["sql"], r["fault"]) for r in records if r["fault"]]
    assert {r.get("method") for r in records} == {"sampled_query"}
    assert {r["rate"] for r in records} >= {on_spark.ALL, 0.5}


TRUTH = (("x", 3), ("y", 1), ("z", 20))


@pytest.mark.parametrize(
    ("rows", "having", "order", "limit", "fault"),
    [
        ((("x", 3), ("y", 1), ("z", 20)), "", "", "", ""),
        ((("x", 3), ("y", 1)), "", "", "", "other rows"),
        ((("x", 3), ("y", 2), ("z", 20)), "", "", "", "is called exact"),
        ((("x", 3), ("y", 1), ("z", 20), ("w", 0)), "", "", "", "joins nothing"),
        ((("x", 3), ("z", 20)), "HAVING COUNT(*) > 2", "", "", ""),
        ((("y", 1), ("x", 3), ("z", 20)), "HAVING COUNT(*) > 2", "", "", "lets [1] in"),
        ((("z", 20), ("x", 3)), "", "ORDER BY 2 DESC", "LIMIT 2", ""),
        ((("x", 3), ("z", 20)), "", "ORDER BY 2 DESC", "LIMIT 2", "not in order"),
        ((("z", 20), ("x", 3), ("y", 1)), "", "ORDER BY 2 DESC", "LIMIT 2", "more rows than LIMIT"),
    ],
)
def test_an_answer_that_is_not_as_spark_has_it_is_seen(on_spark, rows, having, order, limit, fault):
    def answer(rows):
        return Answer(("h", "i0"), rows, types=(pa.string(), pa.int64()))

    whole = [r for r in TRUTH if not having or r[1] > 2]
    if order:
        whole = sorted(whole, key=lambda r: -r[1])[:2]
    asked = on_spark.Question("SELECT APPROXIMATE h, COUNT(*) AS i0 FROM a", having, order, limit, "", 1)
    shown = answer(tuple((h, exact(n)) for h, n in rows))
    found = on_spark.Held(asked, shown, answer(TRUTH), answer(tuple(whole))).record()["fault"]
    assert fault in found
    assert bool(fault) == bool(found)


def test_an_interval_that_misses_is_counted_and_a_group_that_is_left_out_is_seen(on_spark):
    asked = on_spark.Question("SELECT APPROXIMATE h, COUNT(*) AS i0 FROM a", "", "", "", "", 1)
    truth = Answer(("h", "i0"), TRUTH, types=(pa.string(), pa.int64()))
    rows = (("x", Estimate(9, 8, 10, 0.95, True, "theorem")), ("y", Estimate(1, 0, 2, 0.95, True, "theorem")))
    shown = Answer(("h", "i0"), rows, types=truth.types)
    found = on_spark.Held(asked, shown, truth, truth).record()
    assert (found["estimated"], found["missed"]) == (2, 1)
    assert "left out" in found["fault"]


def test_what_having_looks_at_is_found_among_the_items(on_spark):
    select = "SELECT APPROXIMATE h, COUNT(DISTINCT k, h) AS i0, SUM(v) / COUNT(*) AS i1{} FROM a GROUP BY h"
    for more, having, place in (
        (", COUNT(*) AS i2", "HAVING COUNT(*) > 0", 3),
        ("", "HAVING COUNT(*) > 0", None),
        ("", "HAVING i0 > 5", 1),
        ("", "", None),
    ):
        asked = on_spark.Question(select.format(more), having, "", "", "", 1)
        assert on_spark.Held(asked, Answer((), ()), Answer((), ()), Answer((), ()))._having_item() == place
