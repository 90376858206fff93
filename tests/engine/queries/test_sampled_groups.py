"""Groups of a sampled query: which are uncertain, and what is told of those that were not met."""

import numpy as np
import pyarrow as pa
import pytest
from support.sampled_queries import SCHEMA

from skimql.engine.execution.sampled_query import of_table, plan_of
from skimql.engine.queries.sampled_groups import (
    evaluators_of,
    most_unseen,
    told_of_groups,
    uncertain_groups,
    unseen_keys,
)
from skimql.engine.results.rows import Estimated, with_count
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

SELECT = "SELECT APPROXIMATE b.v, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY {} USING sampled_query"
RATE = 0.1


def sampled(rest, sizes, sets=None, added=None):
    """A query, and a sample in which each group has so many keys that add 1."""
    query = with_count(resolve_sampled(parse_statement(SELECT.format(rest)), SCHEMA))
    group = np.repeat(np.arange(len(sizes)), sizes)
    columns = {"__g0": pa.array(group if sets is None else [None] * len(group), pa.int64())}
    if sets is not None:
        columns["__set"] = pa.array([sets[g] for g in group], pa.int64())
    columns |= {
        "__k": pa.array(np.arange(len(group)), pa.int64()),
        "__m0": pa.array(np.ones(len(group))),
    }
    return query, of_table(query, pa.table(columns), RATE, (), added)


def weak(query, found):
    evaluators = evaluators_of(query, plan_of(query, 1), found, 0.95)
    most = most_unseen(found, unseen_keys(RATE, 0.95))
    places = uncertain_groups(query, found, evaluators, most)
    answer = Estimated(query, evaluators, listed=False, weak=places).answer()
    return dict(zip((r[0] for r in answer.rows), answer.uncertain, strict=True))


def test_groups_of_few_keys_are_uncertain():
    assert weak(*sampled("b.v", [3, 7, 8, 500])) == {0: True, 1: True, 2: False, 3: False}


@pytest.mark.parametrize(("order", "uncertain"), [("n DESC", False), ("n", True), ("n + 1 DESC", True)])
def test_of_rows_in_an_order_one_that_was_not_met_may_come_before_all_but_large_ones(order, uncertain):
    query, found = sampled(f"b.v ORDER BY {order} LIMIT 2", [40, 300, 400])
    # A group of 29 keys that add 1 may not have been met.
    assert unseen_keys(RATE, 0.95) == 29
    assert set(weak(query, found).values()) == {uncertain}
    query, found = sampled("b.v ORDER BY n DESC LIMIT 2", [4, 4])
    assert set(weak(query, found).values()) == {True}


def test_what_was_not_met_is_bounded_by_the_most_that_a_key_adds():
    query, found = sampled("b.v", [1, 50])
    told = told_of_groups(query, found, RATE, 0.95)
    assert told[0] == (
        "groups of fewer than about 29 keys (n up to 29, by the most that a key adds to one) may not have been met"
    )
    assert told[1].startswith("1 of the groups were met with one key alone")


def test_what_was_not_met_is_bounded_by_what_a_key_adds_where_that_is_known():
    query, found = sampled("b.v", [1, 50], added={"COUNT(*)": (0.0, 7.0)})
    told = told_of_groups(query, found, RATE, 0.95)
    assert told[0] == "groups of fewer than about 29 keys (n up to 203) may not have been met"
    # One of more than 203 rows comes before any that was not met.
    limited = "b.v ORDER BY n DESC LIMIT 1"
    assert set(weak(*sampled(limited, [400])).values()) == {False}
    assert set(weak(*sampled(limited, [40], added={"COUNT(*)": (0.0, 70.0)})).values()) == {True}


def test_a_null_and_the_total_of_a_rollup_are_different_groups():
    query, found = sampled("ROLLUP(b.v)", [20, 50], sets=[0, 1])
    assert [values for values, _, _ in found.groups] == [(None,), (None,)]
    answer = Estimated(query, evaluators_of(query, plan_of(query, 1), found, 0.95), listed=False).answer()
    assert sorted(row[1].value for row in answer.rows) == [200, 500]


def test_simultaneous_intervals_miss_together_as_seldom_as_one_alone():
    """200 samples of 8 groups: one is missed in as few of them as the binomial bound allows for 5 %."""
    rng, number, keys = np.random.default_rng(7), 8, 400
    sizes = rng.integers(1, 6, (number, keys))
    query, _ = sampled("b.v", [1])
    misses = alone = 0
    for _ in range(200):
        kept = rng.random(keys) < 0.5
        drawn = np.flatnonzero(kept)
        table = pa.table(
            {
                "__g0": pa.array(np.repeat(np.arange(number), drawn.size)),
                "__k": pa.array(np.tile(drawn, number)),
                "__m0": pa.array(sizes[:, kept].ravel().astype(float)),
            }
        )
        evaluators = evaluators_of(query, plan_of(query, 1), of_table(query, table, 0.5), 0.95)
        found = Estimated(query, evaluators, listed=False)
        missed = [
            any(not c.low <= sizes[g].sum() <= c.high for g, c in e.answer().rows)
            for e in (found.at_once(), found)
        ]
        misses, alone = misses + missed[0], alone + missed[1]
    assert misses <= 18
    assert alone > 25
