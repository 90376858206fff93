"""The Spark type of a result column, without asking Spark."""

import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.parser.result_types import digits, summed

TABLES = schema(table("t", i="int", d="double", c="decimal(10,2)", s="string"))


@pytest.mark.parametrize(
    ("kind", "total", "mean"),
    [
        ("int", "bigint", "double"),
        ("double", "double", "double"),
        ("decimal(10,2)", "decimal(20,2)", "decimal(14,6)"),
        (None, None, None),
    ],
)
def test_sums_and_averages_widen_as_in_spark(kind, total, mean):
    assert (summed(kind), summed(kind, average=True)) == (total, mean)


def test_precision_and_scale():
    assert digits("decimal(38,18)") == (38, 18)


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("COUNT(*)", "bigint"),
        ("SUM(i)", "bigint"),
        ("AVG(i)", "double"),
        ("SUM(c)", "decimal(20,2)"),
        ("SUM(i) + 1", "bigint"),
        ("SUM(d) / COUNT(*)", "double"),
    ],
)
def test_items_have_the_types_that_spark_gives_them(item, kind):
    assert query(f"{item} AS r FROM t", TABLES).items[0].type == kind
