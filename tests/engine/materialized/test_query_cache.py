"""What `cache` keeps of a query."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.kept import kept, remember
from support.questions import query
from support.schemas import XYZ

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.query_cache import QueryCache, keepable
from skimql.optimizer.choose import choose
from skimql.optimizer.plan import Attribute


def plan_of(text):
    return choose(query(text, XYZ), 1, 3, 16)


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("SUM(y.m) FROM x JOIN y ON x.id = y.id", True),
        ("SUM(mine(y.m)) FROM x JOIN y ON x.id = y.id", False),
    ],
)
def test_linear_sketches_of_what_is_the_same_tomorrow_are_kept(text, keeps):
    plan = plan_of(text)
    assert keepable(plan, lambda: {"mine"}) is keeps
    assert not keepable(
        replace(plan, synopses=(*plan.synopses, replace(plan.synopses[0], method="level"))), set
    )


def test_names_are_free_whatever_is_kept_and_made():
    catalog = remember(Catalog(), kept("cached_t_k", "t", {"k": [1]}))
    cache = QueryCache(SimpleNamespace(catalog=catalog))
    attributes = (Attribute(("k",), ("bigint",), "k"),)
    assert cache.free_name("t", attributes, ()) == "cached_t_k_2"
    assert cache.free_name("t", attributes, ("CACHED_T_K_2",)) == "cached_t_k_3"
    assert cache.free_name("a b", (replace(attributes[0], class_name="x.y"),), ()) == "cached_a_b_x_y"
