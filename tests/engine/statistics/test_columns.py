"""Spark's column statistics; what it says of a table is given."""

from types import SimpleNamespace

import pytest

from skimql.engine.statistics.columns import column_statistics
from skimql.optimizer.plan import Attribute
from skimql.optimizer.prediction.pilot_counts import VirtualRelation

TOLD = {
    "data_type": "int",
    "num_nulls": "40",
    "distinct_count": "60",
    "histogram": "height: 100.0, num_of_bins: 2",
    "bin_0": "lower_bound: 1.0, upper_bound: 10.0, distinct_count: 10",
    "bin_1": "lower_bound: 11.0, upper_bound: 99.0, distinct_count: 50",
}
KEY = Attribute(("`k`",), ("int",), "")


def statistics(relation=None, origin="catalog", rows="240 rows", **told):
    texts = []

    def sql(text):
        texts.append(text)
        if text.rstrip().endswith("`k`"):
            found = [{"info_name": n, "info_value": v} for n, v in {**TOLD, **told}.items()]
        else:
            found = [{"col_name": "Statistics", "data_type": f"999 bytes, {rows}"}]
        return SimpleNamespace(collect=lambda: found)

    tables = SimpleNamespace(origin=lambda name: (origin, "db.odd`name"))
    relation = relation or VirtualRelation("t", None, (KEY,))
    return column_statistics(SimpleNamespace(sql=sql), tables, relation), texts


def test_figures_are_those_of_analyze():
    found, texts = statistics()
    (attribute,) = found.attributes
    assert (found.tuples, found.scanned, attribute.distinct) == (200.0, 240.0, 60.0)
    assert attribute.histogram.tuples == 200.0
    assert found.gathered_at is None
    assert all("`db`.`odd" in t for t in texts), "a name is never read as anything else"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"origin": "file"}, "files"),
        ({"relation": VirtualRelation("t", "k > 1", (KEY,))}, "a filter"),
        ({"relation": VirtualRelation("t", None, ())}, "no key"),
        ({"relation": VirtualRelation("t", None, (Attribute(("k + 1",), ("int",), ""),))}, "an expression"),
        ({"rows": ""}, "never analysed"),
        ({"data_type": "string"}, "no whole numbers"),
        ({"histogram": None}, "no histogram"),
        ({"distinct_count": "NULL"}, "no distinct count"),
    ],
)
def test_what_leaves_something_to_be_found_out_tells_nothing(options, why):
    assert statistics(**options)[0] is None, why
