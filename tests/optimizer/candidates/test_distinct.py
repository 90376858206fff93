"""COUNT(DISTINCT) in the planner: the least size for an error, the largest for a size, the exact run beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.optimizer.candidates.candidate import NoMethod
from skimql.optimizer.candidates.distinct import ROOM, choose_distinct, counting_synopses, seen_key
from skimql.optimizer.messages import tree_of
from skimql.optimizer.objective import Objective
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics
from skimql.parser.join_graph import SetLeaf, SetOperation

TABLES = schema(*(table(name, k="int", l="int", m="int") for name in "abc"))
TWO = "FROM a JOIN b ON a.k = b.k"
SETS = "FROM (SELECT k FROM a EXCEPT SELECT k FROM b)"
FIVE = Objective(relative_error=0.05)


def typed(text):
    resolved = query(text, TABLES)
    aggregates = tuple(replace(a, types=("int",) * len(a.distinct)) for a in resolved.aggregates)
    return replace(resolved, aggregates=aggregates, sets=_typed(resolved.sets))


def _typed(sets):
    match sets:
        case SetLeaf():
            return replace(sets, types=("int",) * len(sets.columns))
        case SetOperation():
            return replace(sets, left=_typed(sets.left), right=_typed(sets.right))
    return None


def choice(text, objective=FIVE, tuples=1e7, distinct=1e6, keys=1e4, sparse=True):
    """The planner's choice for tables of one size; counted columns have `distinct` values, join keys `keys`."""
    asked = typed(text)
    join = AttributeStatistics(keys)
    tree = None if asked.sets is not None else tree_of(asked.graph)
    known = [
        RelationStatistics(tuples, (join,) * (0 if tree is None else len(tree.classes_of(v))), source="exact")
        for v in range(len(asked.graph.vertices))
    ]
    seen = {}
    for synopsis in counting_synopses(asked):
        own = tuple(
            AttributeStatistics(keys if a.keys[0].strip("`") == "k" else distinct)
            for a in synopsis.attributes
        )
        seen[seen_key(synopsis)] = RelationStatistics(tuples, own, source="exact")
    return choose_distinct(asked, known, seen, objective, sparse)


def test_the_least_size_that_meets_the_error_is_taken():
    widths = []
    for error in (0.1, 0.05, 0.02, 0.01):
        found = choice("COUNT(DISTINCT m) FROM a", Objective(relative_error=error), distinct=5e6)
        assert found.taken.method == "distinct"
        assert found.candidates[-1].method == "exact_run"
        assert 0.85 * error / ROOM < found.taken.half_width(0.95) <= error / ROOM
        widths.append(found.taken.buckets)
    assert widths == sorted(widths)
    surer = choice("COUNT(DISTINCT m) FROM a", Objective(relative_error=0.1, confidence=0.99), distinct=5e6)
    assert surer.taken.buckets > widths[0]


def test_few_values_of_a_small_table_are_counted_exactly():
    found = choice("COUNT(DISTINCT m) FROM a", distinct=50)
    assert found.taken.method == "exact_run"
    sketch = found.candidates[0]
    assert (sketch.method, sketch.error, sketch.refused) == ("distinct", 0.0, "")


def test_a_join_is_counted_by_a_message_and_the_exact_run_pays_for_what_it_puts_out():
    found = choice(f"COUNT(DISTINCT a.m), COUNT(*) {TWO}")
    assert (found.taken.method, len(found.taken.residual.folds)) == ("distinct", 1)
    refused = found.candidates[-1].refused
    assert refused == "would put out 1e+10 joined tuples" or not refused
    assert found.candidates[-1].cost.seconds > 10 * found.taken.cost.seconds


def test_samples_of_both_sides_say_what_they_assume_and_where_they_miss():
    two = f"COUNT(DISTINCT a.m, b.m) {TWO}"
    found = choice(two, Objective(relative_error=0.5), tuples=1e5, distinct=1e4, sparse=False)
    assert any("independent of join keys" in note for note in found.assumptions)
    sampled = found.candidates[0]
    assert sampled.method == "join_distinct"
    assert 0.0 < sampled.error < sampled.half_width(0.95)
    strict = choice(two, Objective(relative_error=0.001), tuples=1e5, distinct=1e4, sparse=False)
    assert "misses 0.001" in strict.candidates[0].refused
    assert strict.taken.method == "exact_run"


def test_a_size_is_filled_and_never_exceeded_and_the_exact_run_is_no_candidate():
    for text in ("COUNT(DISTINCT m) FROM a", f"COUNT(DISTINCT a.m, b.m) {TWO}", f"COUNT(DISTINCT k) {SETS}"):
        errors = []
        for size in (256 << 10, 1 << 20, 8 << 20):
            found = choice(text, Objective(size_bytes=size), tuples=1e6, distinct=1e5)
            assert [c.method for c in found.candidates] == [found.taken.method]
            assert found.taken.nbytes <= size
            errors.append(found.taken.error)
        assert errors == sorted(errors, reverse=True), text
    with pytest.raises(NoMethod, match=r"are too few; 12.3 KB would do"):
        choice("COUNT(DISTINCT m) FROM a", Objective(size_bytes=1000))


def test_a_forced_method_is_sized_and_never_run_exactly():
    found = choice("COUNT(DISTINCT m) FROM a", Objective(relative_error=0.05, method="distinct"), distinct=50)
    assert [c.method for c in found.candidates] == ["distinct"]


def test_a_set_expression_is_as_large_as_its_columns_say():
    found = choice(f"COUNT(DISTINCT k) {SETS}", keys=1e6)
    sketch = found.candidates[0]
    assert sketch.method == "distinct"
    # Both columns have the same million keys as far as is known: nothing is left, and nothing can be told.
    assert sketch.predicted.answer == 0.0
    exact = dict(found.candidates[-1].cost.parts)
    one = choice("COUNT(DISTINCT k) FROM a", keys=1e6).candidates[-1].cost
    assert exact["exact distinct"] >= 2 * dict(one.parts)["exact distinct"] - 1.0, "both sides are grouped"
    assert exact["scan"] == pytest.approx(2 * dict(one.parts)["scan"])
    assert choice("COUNT(DISTINCT k) FROM (SELECT k FROM a UNION SELECT k FROM b)", keys=1e6).candidates[
        0
    ].predicted.answer == pytest.approx(1e6, rel=0.01)


def test_without_statistics_what_is_assumed_is_said():
    asked = typed("COUNT(DISTINCT m) FROM a")
    found = choose_distinct(asked, [RelationStatistics()], {}, FIVE)
    assert any("every tuple has a key of its own" in note for note in found.assumptions)
    assert found.taken.method in ("distinct", "exact_run")


GROUPED = "a.l, COUNT(DISTINCT a.m) FROM a GROUP BY a.l"


def test_of_a_group_its_own_values_are_predicted_and_a_synopsis_for_each_is_paid_for():
    alone = choice("COUNT(DISTINCT m) FROM a").candidates[0]
    grouped = choice(GROUPED, replace(FIVE, groups=((0, 8),)), distinct=9e6).candidates[0]
    # Of 10^7 tuples with 9 * 10^6 values a group of an eighth has about as many values as tuples.
    assert grouped.predicted.answer == pytest.approx(1.25e6, rel=0.06)
    assert grouped.half_width(0.95) <= 0.05
    assert grouped.nbytes == pytest.approx(8 * alone.nbytes, rel=0.05)


def test_groups_of_few_values_are_counted_exactly():
    grouped = choice(
        GROUPED, Objective(size_bytes=4_000_000, groups=((0, 100),)), tuples=2e4, distinct=2e4, keys=100
    ).taken
    assert (grouped.half_width(0.95), grouped.predicted.answer) == (0.0, pytest.approx(200, rel=0.4))


def test_the_other_table_of_a_group_sends_its_keys_or_has_samples():
    groups = replace(FIVE, relative_error=0.5, groups=((0, 4),))
    by_message = choice(f"a.l, COUNT(DISTINCT a.m) {TWO} GROUP BY a.l", groups, tuples=1e6)
    assert {c.method for c in by_message.candidates} == {"distinct", "exact_run"}
    by_samples = choice(f"a.l, COUNT(DISTINCT b.m) {TWO} GROUP BY a.l", groups, tuples=1e6)
    assert {c.method for c in by_samples.candidates} == {"join_distinct", "exact_run"}
    # What a group leaves of the other table's values is less than all of them.
    whole = choice(f"COUNT(DISTINCT b.m) {TWO}", replace(groups, groups=()), tuples=1e6)
    one, all_of_it = by_samples.candidates[0].predicted, whole.candidates[0].predicted
    assert 0 < one.answer < all_of_it.answer


def test_pairs_that_are_all_kept_cost_more_than_a_join_of_as_many_tuples():
    """An exact map of a million pairs takes three times the CPU of Spark's own run of such a join."""
    found = choice(f"COUNT(DISTINCT a.m, b.m) {TWO}", tuples=1e6, distinct=5e5, keys=1e6)
    kept, exact = found.candidates
    assert (kept.method, kept.half_width(0.95), kept.refused) == ("join_distinct", 0.0, "")
    assert kept.cost.seconds > exact.cost.seconds
    assert found.taken.method == "exact_run"
