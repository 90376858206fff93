"""What `cache` keeps of a query."""

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.kept import kept, remember
from support.questions import query
from support.schemas import XYZ

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.execution import build as scanning
from skimql.engine.materialized.query_cache import QueryCache, keepable
from skimql.optimizer.choose import choose
from skimql.optimizer.plan import Attribute

COUNT = "SELECT APPROXIMATE COUNT(*) FROM r JOIN s ON r.k = s.k"


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


@pytest.mark.spark
@pytest.mark.parametrize(
    "begun", [(), ("CREATE SKETCH own ON s (k) OPTIONS (seed = 1)",)], ids=["all", "missing"]
)
def test_a_file_that_changes_while_it_is_read_has_changed_since(session, tmp_path, monkeypatch, begun):
    """Whether all sketches of a query are built for it, or those that the catalog has not."""
    paths = {name: tmp_path / f"{name}.parquet" for name in "rs"}
    for name, path in paths.items():
        pq.write_table(pa.table({"k": [1, 2]}), path)
        session.table(name, path)
    session.settings = replace(session.settings, cache=True, error=None, seed=1)
    for statement in begun:
        session.sql(statement)
    whole = scanning.build

    def changing(*given):
        found = whole(*given)
        pq.write_table(pa.table({"k": [1, 2, 2]}), paths["r"])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(scanning, "build", changing)
        assert session.sql(COUNT).value == 2
    answer = session.sql(COUNT)
    assert (answer.value, answer.rows[0][0].certified) == (2, False)
    assert any("1 changed file" in n for n in answer.notes)
