"""Plans of views that were made with others: their sizes, and as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.continuous import declared, stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.store import continuous
from skimql.engine.streams.view_plan import plan_from, plan_text, sized_as
from skimql.engine.streams.views import planned

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
