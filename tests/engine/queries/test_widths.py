"""The half-widths that an attempt is given: of every aggregate, by the values, files and statistics at hand."""

import math
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries import widths
from skimql.engine.queries.distinct import DistinctPlan
from skimql.optimizer.candidates.enumerate import choose_method
from skimql.optimizer.candidates.first_sample import LEAST_SHARE, ClassSample, Size, Together
from skimql.optimizer.candidates.value_draws import Summed
from skimql.optimizer.choose import choose
from skimql.optimizer.messages import tree_of, whole
from skimql.optimizer.objective import Objective
from skimql.optimizer.physical import Predicted, SampleJoin, SketchJoin
from skimql.optimizer.plan import most_bytes
from skimql.optimizer.prediction.cost import Cost
from skimql.optimizer.prediction.first_class import SeenKeys

N, RATE = 100_000, 0.1
BACKEND = MemoryBackend(
    MemoryTables(
        {
            "r": pa.table({"k": np.arange(N), "x": np.tile([1.0, 3.0], N // 2), "g": np.arange(N) % 4}),
            "s": pa.table({"k": np.arange(N)}),
        }
    )
)
JOIN = "FROM r JOIN s ON r.k = s.k"
BOTH = f"COUNT(*), SUM(r.x) {JOIN}"
VALUES = (Summed(0, "`x`", np.array([1.0, 3.0]), 0.0, 3.0),)
STATED = Predicted(0.7, 2.0, 3.0)
# Of N keys of one tuple each, sampled with probability RATE, the count and the sum of values 1 and 3.
COUNT = 1.96 * math.sqrt((1.0 - RATE) / (RATE * N))
SUM = COUNT * math.sqrt((1**2 + 3**2) / 2) / 2


@cache
def query_of(select):
    return MemoryRun.of(f"SELECT APPROXIMATE {select}", BACKEND, Settings()).query


STATISTICS = BACKEND.statistics(query_of(BOTH))


def chosen(query, method=None):
    """The choice by exact statistics: a sample of the class, or sketches of this method."""
    tree = tree_of(query.graph)
    choice = choose_method(tree, STATISTICS, Objective(relative_error=0.05))
    taken = replace(choice.taken, sample=ClassSample(0, RATE))
    if method is not None:
        taken = replace(choice.taken, sample=None, method=method, residual=whole(tree))
    return replace(choice, taken=taken)


def sampled(query):
    return SampleJoin("key_sample", choose(query, 0, 0, 0, sample=ClassSample(0, RATE)), STATED)


def near(*expected):
    """To a tenth: intervals are a little skewed, and have room for unseen keys."""
    return pytest.approx(expected, rel=0.1)


def test_the_widest_is_that_of_the_aggregates_that_are_shown():
    query = query_of(f"r.g, SUM(r.x) {JOIN} GROUP BY r.g")
    assert len(query.aggregates) == 2, "a COUNT(*) tells which groups are there"
    found = widths.with_widths(STATED, query, [0.1, 0.5])
    assert found == replace(STATED, half_width=0.1, half_widths=(0.1, 0.5))
    assert widths.with_widths(STATED, query, [0.1, math.nan]).half_width == 0.1
    assert math.isnan(widths.with_widths(STATED, query, [math.nan, 0.1]).half_width)
    assert math.isnan(widths.with_widths(STATED, query_of(BOTH), [0.3, math.nan]).half_width)
    assert widths.with_widths(STATED, query_of(BOTH), [0.3, 0.4]).half_width == 0.4
    assert widths.with_widths(STATED, replace(query, items=()), [0.1, 0.5]).half_width == 0.5


def test_a_sample_by_statistics_has_the_widths_of_its_count_and_of_its_sum():
    query = query_of(BOTH)
    found = widths.planned_sample(sampled(query), chosen(query), VALUES, 0.95, {}).predicted
    assert found.half_widths == near(COUNT, SUM)
    assert (found.half_width, found.seconds) == (max(found.half_widths), 2.0)
    for unseen in ((), (Summed(0, "`x`", np.empty(0), 0.0, 3.0),)):
        blind = widths.planned_sample(sampled(query), chosen(query), unseen, 0.95, {}).predicted
        assert blind.half_widths[:1] == near(COUNT)
        assert math.isnan(blind.half_widths[1])


def test_what_is_no_sample_by_statistics_is_left_as_it_is():
    query = query_of(BOTH)
    attempt, choice = sampled(query), chosen(query)
    bare = replace(attempt, plan=replace(attempt.plan, sample=None))
    for own, by in (
        (bare, choice),
        (attempt, replace(choice, figures=None)),
        (attempt, chosen(query, "hash")),
    ):
        assert widths.planned_sample(own, by, VALUES, 0.95, {}) is own


@pytest.mark.parametrize("groups", [4, 16])
def test_of_so_many_groups_each_has_so_much_less(groups):
    query = query_of(f"r.g, COUNT(*) {JOIN} GROUP BY r.g")
    wider = {0: groups}
    sample = widths.planned_sample(sampled(query), chosen(query), (), 0.95, wider).predicted
    assert sample.half_widths == near(COUNT * math.sqrt(groups))
    joined = widths.planned_sketches(sketches(query, 4096), chosen(query, "hash"), (), 0.95, wider)
    # A group has 1/n of the tuples: F2 of r falls to 1/n of it, and so does the answer.
    assert joined.predicted.half_widths == near(of_eleven() * math.sqrt((groups + 1) / 4096))


def sketches(query, buckets, predicted=STATED):
    return SketchJoin("hash", choose(query, 0, 11, buckets, sparse=False), predicted)


@cache
def of_eleven():
    """The reach of the 2nd to the 10th of eleven normal estimates about their median, in standard deviations."""
    rows = np.sort(np.random.default_rng(3).standard_normal((20_000, 11)), axis=1)
    return float(np.median(np.maximum(rows[:, 9] - rows[:, 5], rows[:, 5] - rows[:, 1])))


@pytest.mark.parametrize("buckets", [1024, 16384])
def test_sketches_by_statistics_have_the_widths_of_their_count_and_of_their_sum(buckets):
    """A row has the variance (F2 F2' + J^2) / buckets: F2 is N of the tuples, 5 N of the values, J is N and 2 N."""
    query = query_of(BOTH)
    attempt = sketches(query, buckets)
    found = widths.planned_sketches(attempt, chosen(query, "hash"), VALUES, 0.95, {}).predicted
    expected = [of_eleven() * math.sqrt(v / buckets) for v in (2.0, (5 + 4) / 4)]
    assert found.half_widths == near(*expected)
    assert found.half_width == max(found.half_widths)
    # The least of several sketches decides.
    first, *others = attempt.plan.synopses
    plan = replace(attempt.plan, synopses=(*others, replace(first, buckets=buckets // 4)))
    uneven = widths.planned_sketches(replace(attempt, plan=plan), chosen(query, "hash"), VALUES, 0.95, {})
    assert uneven.predicted.half_widths == near(*(2 * e for e in expected))


def test_what_is_exact_has_no_width_and_what_has_no_statistics_none_that_is_told():
    query = query_of(BOTH)
    attempt = sketches(query, 1024, Predicted(0.0, 2.0, 3.0))
    found = widths.planned_sketches(attempt, chosen(query, "hash"), (), 0.95, {})
    assert found.predicted == Predicted(0.0, 2.0, 3.0, (0.0, 0.0))
    assert widths.planned_sketches(attempt, replace(chosen(query), figures=None), (), 0.95, {}) is attempt
    unkeyed = tuple(replace(s, attributes=()) for s in attempt.plan.synopses)
    bare = replace(attempt, plan=replace(attempt.plan, synopses=unkeyed))
    assert widths.planned_sketches(bare, chosen(query), (), 0.95, {}) is bare


def files(share=1.0, seen=(), together=None):
    """What files tell: as many tuples and keys as there are, and a filter that jobs alone can look through."""
    return SimpleNamespace(
        sizes_by=lambda jobs: [Size(N, share if jobs else 1.0), Size(N)],
        values=float(N),
        keys_seen=dict(seen),
        together=together,
    )


@pytest.mark.parametrize(
    "told",
    [
        files(share=0.25),
        # Of a thousand tuples looked at three quarters have no key.
        files(seen={(0, 0): SeenKeys(np.arange(250), np.ones(250, np.int64), 1000, True)}.items()),
        # A quarter of what passes either of two filters passes both.
        files(together=Together(0.25, 0.01)),
    ],
    ids=["a filter", "NULL keys", "two filters"],
)
def test_a_quarter_of_the_tuples_makes_a_first_sample_twice_as_wide_where_it_is_looked_at(told):
    query = query_of(BOTH)
    looked, blind = (
        widths.first_sample(sampled(query), of, VALUES, 0.95, {}, jobs=jobs).predicted
        for of, jobs in ((told, True), (files(share=0.25), False))
    )
    assert looked.half_widths == near(2 * COUNT, 2 * SUM)
    assert blind.half_widths == near(COUNT, SUM)
    assert (blind.half_width, blind.seconds, blind.nbytes) == (max(blind.half_widths), 2.0, 3.0)


def test_a_filter_that_kept_nothing_that_was_looked_at_is_taken_to_keep_the_least_share():
    query = query_of(BOTH)
    none, least, more = (
        widths.first_sample(sampled(query), files(share=share), VALUES, 0.95, {}, jobs=True).predicted
        for share in (0.0, LEAST_SHARE, 4 * LEAST_SHARE)
    )
    assert none == least
    assert 0.0 < 1.5 * more.half_width < none.half_width < math.inf


def test_distinct_values_of_groups_have_their_own_width_and_not_that_of_the_count_that_tells_the_groups():
    query = query_of(f"r.g, COUNT(DISTINCT r.k) AS n {JOIN} GROUP BY r.g")
    choice, _ = DistinctPlan(query, Settings(error=0.05), BACKEND.relations, False, {0: 4}).choice()
    (own, beside) = choice.taken.predicted.widths
    assert [a.function for a in query.aggregates] == ["count_distinct", "count"]
    assert (own, beside > 0.01) == (0.0, True), (
        "25,000 values fit the exact map of a level sketch of this size"
    )
    attempt = beside_distinct(query, choice)
    found = widths.planned_distinct(attempt, choice, tuple, 0.95, {0: 4}).predicted
    assert (found.half_width, found.half_widths[0]) == (0.0, 0.0)
    assert widths.planned_distinct(attempt, chosen(query_of(BOTH)), tuple, 0.95, {}) is attempt


def beside_distinct(query, choice):
    """What is built of a choice of distinct values."""
    plan = choose(query, 0, choice.taken.rows, choice.taken.buckets)
    return SketchJoin("distinct", plan, STATED)


def test_a_sum_beside_distinct_values_has_the_width_of_its_sketches_and_an_average_a_narrower_one():
    query = query_of(f"COUNT(DISTINCT r.k) AS n, SUM(r.x) AS x, AVG(r.x) AS a {JOIN}")
    settings = Settings(size_bytes=2_000_000)
    choice, _ = DistinctPlan(query, settings, BACKEND.relations, False).choice()
    attempt = beside_distinct(query, choice)
    found = widths.planned_distinct(attempt, choice, lambda: VALUES, 0.95, {}).predicted
    distinct, total, mean = found.half_widths
    assert distinct == choice.taken.predicted.widths[0]
    assert total == pytest.approx(of_eleven() * math.sqrt((5 + 4) / 4 / choice.taken.buckets), rel=0.1)
    assert 0.0 < mean < total
    blind = widths.planned_distinct(attempt, choice, tuple, 0.95, {}).predicted
    assert math.isnan(blind.half_width)


def buckets_of(attempt):
    """Of the sketches with counters, and of those of distinct values."""
    synopses = attempt.plan.synopses
    return tuple({s.buckets for s in synopses if s.distinct is distinct} for distinct in (False, True))


def test_sketches_of_an_asked_error_have_buckets_for_nearly_all_their_intervals():
    """The reach of eleven normal rows, in place of its median, that one interval in forty has; of the widest aggregate."""
    query = query_of(BOTH)
    choice = chosen(query, "hash")
    attempt = sketches(query, 1024)
    found = widths.planned_sketches(attempt, choice, VALUES, 0.95, {}, 0.05)
    rows = np.sort(np.random.default_rng(4).standard_normal((20_000, 11)), axis=1)
    reach = np.quantile(np.maximum(rows[:, 9] - rows[:, 5], rows[:, 5] - rows[:, 1]), widths.MET)
    (counters,), _ = buckets_of(found)
    assert counters == pytest.approx((reach / 0.05) ** 2 * (5 + 4) / 4, rel=0.2)
    expected = of_eleven() * math.sqrt((5 + 4) / 4 / counters)
    assert found.predicted.half_width == pytest.approx(expected, rel=0.1)
    assert found.predicted.nbytes == pytest.approx(
        STATED.nbytes + sum(8 * 11 * (counters - 1024) for _ in found.plan.synopses)
    )
    # Those that stay exact maps need no more.
    exact = replace(attempt, plan=choose(query, 0, 11, 40 * N))
    assert widths.planned_sketches(exact, choice, VALUES, 0.95, {}, 1e-3).predicted.half_width == 0.0
    small = replace(choice, objective=replace(choice.objective, max_bytes=300_000))
    agms = replace(choice, taken=replace(choice.taken, method="agms"))
    for by, target in ((choice, None), (choice, 0.5), (small, 0.05), (agms, 0.05)):
        assert widths.planned_sketches(attempt, by, VALUES, 0.95, {}, target).plan is attempt.plan


def test_beside_distinct_values_sketches_have_their_own_size():
    query = query_of(f"COUNT(DISTINCT r.k) AS n, COUNT(*) AS c {JOIN}")
    choice, _ = DistinctPlan(query, Settings(error=0.05), BACKEND.relations, False).choice()
    attempt = beside_distinct(query, choice)
    found = widths.planned_distinct(attempt, choice, tuple, 0.95, {}, 0.02)
    (before, distinct), (after, same) = buckets_of(attempt), buckets_of(found)
    assert same == distinct
    # Exact maps at first, they may not be planned to take more than there is either.
    few = replace(
        choice, objective=replace(choice.objective, max_bytes=sum(map(most_bytes, found.plan.synopses)) - 1)
    )
    assert attempt.predicted.nbytes < 1000
    assert widths.planned_distinct(attempt, few, tuple, 0.95, {}, 0.02).plan is attempt.plan
    assert min(after) > 4 * max(before)
    assert (
        found.predicted.half_widths[1]
        < 0.02
        < widths.planned_distinct(attempt, choice, tuple, 0.95, {}).predicted.half_widths[1]
    )


def enlarged(target, cost=math.inf, most_bytes=math.inf, select=BOTH, groups=None):
    """The sample that is taken for a target, beside an exact run of such a cost."""
    query = query_of(select)
    choice = chosen(query)
    others = [c for c in choice.candidates if c.method != "exact_run"]
    run = replace(
        next(c for c in choice.candidates if c.method == "exact_run"), refused="", cost=Cost(cost, ())
    )
    taken = replace(choice.taken, cost=Cost(2.0, (("scan", 1.0), ("sample", 1.0))), nbytes=100.0)
    objective = SimpleNamespace(most_bytes=most_bytes)
    choice = replace(choice, taken=taken, candidates=(*others, run), objective=objective)

    def of_plan(plan, predicted):
        attempt = SampleJoin("key_sample", plan, predicted)
        return widths.planned_sample(attempt, choice, VALUES, 0.95, groups or {})

    first = of_plan(sampled(query).plan, STATED)
    return first, widths.large_enough(first, choice, target, of_plan)


def test_a_sample_whose_intervals_would_be_too_wide_is_made_larger():
    first, found = enlarged(SUM)
    assert first.predicted.half_width > SUM, "it leaves no room for unseen keys"
    # Relative to a value that is off itself.
    assert 0.9 * SUM < found.predicted.half_width < SUM / (1 + 0.8 * SUM)
    more = found.plan.sample.rate / RATE
    assert 1.0 < more < 1.3
    assert found.predicted.seconds == pytest.approx(1.0 + more)
    assert found.predicted.nbytes == pytest.approx(100.0 * more)
    assert replace(found.plan, sample=first.plan.sample) == first.plan


@pytest.mark.parametrize(
    ("target", "beside"),
    [
        pytest.param(None, {}, id="no error is asked for"),
        pytest.param(0.5, {}, id="it is large enough"),
        pytest.param(SUM, {"cost": 2.0}, id="the exact run is cheaper"),
        pytest.param(SUM, {"most_bytes": 101.0}, id="a larger one takes too many bytes"),
    ],
)
def test_a_sample_is_left_as_it_was(target, beside):
    first, found = enlarged(target, **beside)
    assert found is first


def test_a_sample_of_groups_has_room_for_their_choice_and_for_small_ones():
    grouped = {"select": f"r.g, SUM(r.x) {JOIN} GROUP BY r.g", "groups": {0: 4}}
    first, found = enlarged(3.0 * SUM, **grouped)
    # Four groups are each as wide as a quarter of all tuples; nine tenths of the chance to miss are left to them.
    assert first.predicted.half_width > 2.0 * SUM * 2.005 / 1.96
    assert 0.75 * 3.0 * SUM < widths.UNEVEN * found.predicted.half_width < 3.0 * SUM
    same, again = enlarged(1.5 * first.predicted.half_width, **grouped)
    assert again is same


def test_where_no_part_of_the_keys_is_enough_all_are_taken(monkeypatch):
    def planned(attempt, choice, *_):
        width = 0.0 if attempt.plan.sample.rate == 1.0 else 3.0 * SUM
        return replace(attempt, predicted=replace(attempt.predicted, half_width=width))

    monkeypatch.setattr(widths, "planned_sample", planned)
    first, found = enlarged(SUM)
    assert (first.predicted.half_width, found.predicted.half_width) == (3.0 * SUM, 0.0)
    assert found.plan.sample.rate == 1.0
    assert found.predicted.seconds == pytest.approx(1.0 + 1.0 / RATE)
    dear, same = enlarged(SUM, cost=1.0 / RATE)
    assert same is dear


def test_the_exact_run_is_taken_where_it_would_follow_what_misses():
    query = query_of(BOTH)
    attempt, choice = sampled(query), chosen(query)
    run = next(c for c in choice.candidates if c.method == "exact_run")
    able = replace(choice, candidates=(replace(run, refused=""),))
    assert widths.exact_instead(attempt, able, 0.6).taken.method == "exact_run"
    assert widths.exact_instead(sketches(query, 64), able, 0.6).taken.method == "exact_run"
    unknown = replace(attempt, predicted=replace(STATED, half_width=math.nan))
    unsized = replace(able, objective=Objective(size_bytes=4096))
    for own, by, target in (
        (attempt, able, 0.7),
        (attempt, able, None),
        (attempt, unsized, 0.6),
        (attempt, replace(able, candidates=(replace(run, refused="no"),)), 0.6),
        (unknown, able, 0.6),
    ):
        assert widths.exact_instead(own, by, target) is None


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_of_values_without_squares_nothing_is_foretold(scale):
    query = query_of(BOTH)
    summed = (replace(VALUES[0], values=scale * VALUES[0].values, high=3.0 * scale),)
    assert widths._values(VALUES, query)
    assert not widths._values(summed, query)
