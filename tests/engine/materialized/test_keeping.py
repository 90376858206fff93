"""What `cache` keeps: under free names, and only what the catalog can keep."""

from types import SimpleNamespace

from support.kept import kept, remember
from support.questions import query
from support.schemas import schema, table

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.keeping import Keeping
from skimql.optimizer.choose import choose
from skimql.optimizer.plan import Attribute

TABLES = schema(table("x", id="int"), table("y", id="int", v="int"))


def test_a_name_is_free_in_the_catalog_and_among_those_that_are_made_with_it():
    taken = kept("Cached_x_id", "x", {"id": [1]})
    keeping = Keeping(SimpleNamespace(catalog=remember(Catalog(), taken)))
    attributes = (Attribute(("`id`",), ("int",), "id"),)
    assert keeping.free_name("x", attributes, []) == "cached_x_id_2"
    assert keeping.free_name("x", attributes, ["CACHED_X_ID_2"]) == "cached_x_id_3"
    assert keeping.free_name("a b", attributes, []) == "cached_a_b_id"


def test_what_has_another_value_tomorrow_is_not_kept(monkeypatch):
    put = []
    monkeypatch.setattr(Keeping, "put", lambda self, sketches: put.append(sketches))
    environment = SimpleNamespace(own_functions=lambda: frozenset(("mine",)))
    keeping = Keeping(SimpleNamespace(catalog=Catalog(), environment=environment))
    asked = []
    monkeypatch.setattr(
        Keeping, "_cached", lambda self, plan, numbers, *_: asked.append(plan.synopses[numbers[0]].table)
    )
    plan = choose(query("COUNT(*) FROM x JOIN y ON x.id = y.id WHERE y.v < hash(now())", TABLES), 1, 11, 64)
    keeping.keep(plan, dict.fromkeys(range(len(plan.synopses))))
    assert (asked, put) == (["x"], [])
