"""Plans of views that were made with others: their sizes, and as text."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.continuous import declared, stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.store import continuous
from skimql.engine.streams.view_plan import own_plan, plan_from, plan_text, sized_as
from skimql.engine.streams.views import planned
from skimql.optimizer.domain_partition import DomainPartition

SCHEMA = "k BIGINT, g BIGINT, v BIGINT, ts TIMESTAMP"
HOURLY = {"window": "1 hour", "time": "ts"}
PAIRS = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"
COUNT = "SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s FROM a JOIN b ON a.k = b.k"


def declare(tmp_path, **views):
    catalog = declared(Catalog(tmp_path), [stream_of("a", SCHEMA), stream_of("b", SCHEMA)], views)
    found = continuous(catalog)
    return {n: planned(found.views[n], found.streams) for n in views}


def test_a_plan_survives_its_text_and_is_of_one_query(tmp_path):
    views = declare(tmp_path, q=COUNT, r="SELECT APPROXIMATE COUNT(*) AS n FROM a")
    plan = views["q"].plan
    sized = replace(plan, synopses=tuple(replace(s, buckets=77) for s in plan.synopses))
    assert plan_from(plan_text(sized), plan.query, plan.seed) == sized
    with pytest.raises(ValueError, match=r"."):
        plan_from(plan_text(sized), views["r"].query, plan.seed)


DOMAIN = DomainPartition((-(2**63), -5, 2**63 - 1), (1, 0, 1))


def parted(plan):
    """The plan with its sketches by a key in two parts."""
    keyed = [s for s in plan.synopses if s.attributes]
    name = keyed[0].attributes[0].class_name
    cells = [replace(s, cell=(part,)) for s in keyed for part in range(2)]
    rest = [s for s in plan.synopses if not s.attributes]
    places = {s: [cells.index(replace(s, cell=(part,))) for part in range(2)] for s in keyed}

    def terms(of):
        return tuple(
            replace(t, synopses=tuple(places[plan.synopses[i]][part] for i in t.synopses))
            for t in of
            for part in range(2)
        )

    aggregates = tuple(replace(a, total=terms(a.total), presence=terms(a.presence)) for a in plan.aggregates)
    return replace(plan, synopses=(*cells, *rest), aggregates=aggregates, partitions=((name, DOMAIN),))


def test_parts_of_a_domain_survive_the_text_and_what_is_none_is_refused(tmp_path):
    plan = own_plan(parted(declare(tmp_path, q=COUNT)["q"].plan))
    text = plan_text(plan)
    assert plan_from(text, plan.query, plan.seed) == plan
    data = json.loads(text)
    (name, lows, labels) = data["partitions"][0]
    for broken in (
        [],
        [[name, lows, [0, 0, 0]]],
        [[name, lows[::-1], labels]],
        [[name, lows, [2, 0, 2]]],
        [[name, lows, labels[:2]]],
        [[name, [0, 1, 2**63], labels]],
        [["another", lows, labels]],
    ):
        with pytest.raises(ValueError, match=r"."):
            plan_from(json.dumps({**data, "partitions": broken}), plan.query, plan.seed)
    data["synopses"][0]["cell"] = [2]
    with pytest.raises(ValueError, match="part that its domain has not"):
        plan_from(json.dumps(data), plan.query, plan.seed)
    assert own_plan(replace(plan, partitions=(*plan.partitions, ("other", DOMAIN)))) == plan


def test_a_plan_takes_the_buckets_in_which_most_of_its_sketches_are_there(tmp_path):
    plan = declare(tmp_path, q=COUNT)["q"].plan
    assert sized_as(plan, ()) == plan
    first, second, *_ = keyed = [s for s in plan.synopses if s.attributes]
    known = [replace(first, buckets=99), replace(first, buckets=50), replace(second, rows=3, buckets=50)]
    found = sized_as(plan, known).synopses
    assert {s.buckets for s in found if s.attributes} == {50}
    assert known[1] in found
    assert known[2] in found
    assert len(found) == len(plan.synopses) >= len(keyed)


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        (f"{COUNT} OPTIONS (buckets = 100)", True),
        (f"{PAIRS} SIZE 1 KB", True),
        (f"{PAIRS} GROUP BY a.g OPTIONS (buckets = 100)", True),
        ((f"{PAIRS} OPTIONS (buckets = 100)", HOURLY), False),
    ],
)
def test_a_later_view_takes_the_sizes_of_what_is_not_told_apart_either(tmp_path, other, shared):
    views = declare(tmp_path, other=other, q=COUNT)
    buckets = {n: {s.buckets for s in v.plan.synopses if s.attributes} for n, v in views.items()}
    assert (buckets["q"] == buckets["other"]) == shared
