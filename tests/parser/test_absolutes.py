"""The columns that stand behind those of the user where sums may be of doubles."""

from __future__ import annotations

import pytest
import sqlglot
from support.questions import query
from support.schemas import schema, table

from skimql.parser.absolutes import sums_in, with_absolutes

TABLES = schema(
    table("a", k="bigint", x="double", y="double", n="int", m="decimal(9,2)"), table("b", k="bigint")
)
WRITTEN = {
    "SUM(a.x) FROM a": "SUM(a.x) , SUM(a.x), SUM(ABS(CAST((a.x\n) AS DOUBLE) * 5.421010862427522e-20D)), COUNT((a.x\n)), MIN((a.x\n)) FROM a",
    "AVG(a.x /* ) FROM */) AS `FROM`, COUNT(*), -- FROM (\n SUM(a.x) / SUM(a.y) FROM a": 12,
    "SUM(CASE WHEN a.k = 1 THEN a.x ELSE 0 END) FILTER (WHERE (a.k > 0)) s, a.k FROM a GROUP BY a.k": 4,
    "ROUND(SUM(a.x * (1 - a.y)), 2) FROM a JOIN b ON a.k = b.k": 4,
}


@pytest.mark.parametrize("text", WRITTEN)
def test_absolute_values_stand_behind_the_columns_of_the_user(text):
    asked = query(text, TABLES)
    found = with_absolutes(asked)
    expected = WRITTEN[text]
    if isinstance(expected, str):
        assert found.text.split("APPROXIMATE")[-1].split(None, 1)[1] == expected
    else:
        assert sum(len(c) for c in found.columns.values()) == expected
    own = len(asked.items)
    parsed = sqlglot.parse_one(found.text, read="spark")
    assert len(parsed.expressions) == own + sum(len(c) for c in found.columns.values())
    assert parsed.args.get("from_") or parsed.args.get("from")


def test_integers_and_decimals_are_asked_no_more_and_averages_of_them_as_spark_adds_them():
    asked = query(
        "SUM(a.n), SUM(a.m), COUNT(a.x), AVG(a.m), AVG(a.n), SUM(a.n) + COUNT(*), SUM(a.x) / COUNT(*) FROM a",
        TABLES,
    )
    assert [bool(sums_in(asked, item)) for item in asked.items] == [False] * 4 + [True, False, True]
    assert {len(c) for c in with_absolutes(asked).columns.values()} == {1, 4}
