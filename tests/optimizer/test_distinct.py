"""COUNT(DISTINCT): what is built for which projection, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.errors import UnsupportedQuery
from skimql.optimizer.choose import choose, plan_within
from skimql.optimizer.distinct_count import JoinedPairs, KeySets, PairsByKey, Part, parts_of
from skimql.optimizer.groups import per_group
from skimql.optimizer.plan import most_bytes

TABLES = schema(*(table(name, k="int", l="int", m="int") for name in "abc"))
TWO = "FROM a JOIN b ON a.k = b.k"
CHAIN = "FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l"
CLASS = "FROM a, b, c WHERE a.k = b.k AND b.k = c.k"


def typed(text):
    """A resolved query whose counted columns are all INT, as those of the tables are."""
    resolved = query(text, TABLES)
    aggregates = tuple(replace(a, types=("int",) * len(a.distinct)) for a in resolved.aggregates)
    return replace(resolved, aggregates=aggregates)


def planned(text, **options):
    return choose(typed(text), 1, 11, 4096, **options)


def count_of(text, **options):
    return planned(text, **options).aggregates[0].distinct


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("COUNT(DISTINCT m) FROM a", Part),
        (f"COUNT(DISTINCT a.m) {TWO}", Part),
        (f"COUNT(DISTINCT b.k, a.m) {TWO}", Part),
        (f"COUNT(DISTINCT b.k) {TWO}", KeySets),
        (f"COUNT(DISTINCT a.m, b.m) {TWO}", JoinedPairs),
        (f"COUNT(DISTINCT a.m, b.m, a.k) {TWO}", PairsByKey),
        (f"COUNT(DISTINCT c.m) {CHAIN}", Part),
        (f"COUNT(DISTINCT a.m, b.m) {CHAIN}", JoinedPairs),
        (f"COUNT(DISTINCT c.l) {CHAIN}", KeySets),
        # a.k is b.k, so that b alone has both.
        (f"COUNT(DISTINCT a.k, c.l) {CHAIN}", Part),
        (f"COUNT(DISTINCT c.k) {CLASS}", KeySets),
        (f"COUNT(DISTINCT a.m, c.m) {CLASS}", JoinedPairs),
    ],
)
def test_kind_of_synopses(text, kind):
    assert type(count_of(text)) is kind


def test_all_of_a_class_are_intersected_and_others_sent():
    assert len(set(parts_of(count_of(f"COUNT(DISTINCT c.k) {CLASS}")))) == 3
    plan = planned(f"COUNT(DISTINCT a.k) {CHAIN}")
    assert {s.table: len(s.messages) for s in plan.synopses} == {"a": 0, "b": 1}


def test_what_is_folded_for_a_count_makes_the_others_exact():
    plan = planned(f"COUNT(DISTINCT a.m), SUM(b.m) {TWO}")
    assert [(s.table, s.method) for s in plan.synopses] == [("a", "level"), ("a", "total"), ("a", "total")]
    assert plan.vertices == (0,)


def test_a_message_too_large_leaves_samples_or_nothing():
    found = count_of(f"COUNT(DISTINCT b.k, a.m) {TWO}", too_large=(1,))
    assert (type(found), found.full) == (PairsByKey, False)
    with pytest.raises(UnsupportedQuery, match="keys of b take more"):
        count_of(f"COUNT(DISTINCT a.m) {TWO}", too_large=(1,))


@pytest.mark.parametrize(
    "text",
    [
        f"COUNT(DISTINCT a.m, c.m) {CHAIN}",
        f"COUNT(DISTINCT a.m, b.m, c.m) {CHAIN}",
        f"c.m, COUNT(DISTINCT a.m) {CHAIN} GROUP BY c.m",
    ],
)
def test_refused(text):
    with pytest.raises(UnsupportedQuery) as caught:
        count_of(text)
    assert caught.value.code == "SKIMQL_DISTINCT_JOIN"


def test_groups_take_synopses_of_their_own_where_they_differ():
    for by, own in (("a.l", {"a"}), ("b.l", {"b"})):
        query = typed(f"{by}, COUNT(DISTINCT a.m), COUNT(*) {TWO} GROUP BY {by}")
        plans = per_group(choose(query, 1, 11, 4096), {"ab".index(by[0]): 3})
        assert {s.table for s in plans[0].synopses if s.group is not None} == own
        read = [{p.synopsis for p in parts_of(plan.aggregates[0].distinct)} for plan in plans]
        grouped = [{i for i in r if plans[0].synopses[i].group is not None} for r in read]
        assert not grouped[0] & grouped[1]
        assert all(grouped)


@pytest.mark.parametrize(
    "text", ["COUNT(DISTINCT m) FROM a", f"COUNT(DISTINCT a.m, b.m), COUNT(DISTINCT a.l, b.l) {TWO}"]
)
def test_a_size_is_kept_and_used(text):
    size = 4 << 20
    asked = typed(text)
    plan = plan_within(lambda buckets: choose(asked, 1, 11, buckets), 11, size, "")
    assert 0.8 * size <= sum(map(most_bytes, plan.synopses)) <= size
