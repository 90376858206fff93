"""The fixture of comparison types is what the running Spark's analyser says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SPARK = json.loads((Path(__file__).parents[1] / "fixtures" / "spark_comparison_types.json").read_text())
NAMES = sorted({pair.split(" | ")[0] for pair in SPARK["ansi"]})


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["ansi", "legacy"])
def test_the_fixture_is_what_spark_analyses(spark, mode):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true" if mode == "ansi" else "false")
    try:
        columns = ", ".join(f"c{i} {name}" for i, name in enumerate(NAMES))
        spark.createDataFrame([], columns).createOrReplaceTempView("all_types")
        pairs = {
            f"{left} | {right}": f"c{i} = c{j}"
            for i, left in enumerate(NAMES)
            for j, right in enumerate(NAMES)
        }
        assert dict(zip(pairs, _compared(spark, pairs.values()), strict=True)) == SPARK[mode]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
        spark.catalog.dropTempView("all_types")


def _compared(spark, conditions):
    """The type that both sides of each ``left = right`` have in one analysed plan, or "" where Spark refuses."""
    state = spark._jsparkSession.sessionState()
    selected = ", ".join(f"{condition} AS e{n}" for n, condition in enumerate(conditions))
    # The rules without the check that raises the first refusal: a refused condition stays unresolved.
    items = (
        state.analyzer()
        .execute(state.sqlParser().parsePlan(f"SELECT {selected} FROM all_types"))
        .projectList()
    )
    return [_type_of(items.apply(n).child()) for n in range(items.size())]


def _type_of(condition):
    """Spark folds nothing here: the condition is EqualTo with the casts it added."""
    if not condition.resolved():
        return ""
    left, right = (side.dataType().simpleString() for side in (condition.left(), condition.right()))
    assert left == right
    return left
