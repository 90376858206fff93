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
        frame = spark.createDataFrame([], columns)
        for i, left in enumerate(NAMES):
            for j, right in enumerate(NAMES):
                expected = SPARK[mode][f"{left} | {right}"]
                assert _compared(frame, f"c{i}", f"c{j}") == expected, f"{left} | {right}"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def _compared(frame, left, right):
    """The type both sides of ``left = right`` have in the analysed plan, or "" if Spark refuses."""
    from pyspark.errors import AnalysisException

    try:
        analysed = frame.where(f"{left} = {right}")._jdf.queryExecution().analyzed()
    except AnalysisException:
        return ""
    # Spark folds nothing here: the condition is EqualTo with the casts it added.
    condition = analysed.condition()
    sides = {condition.left().dataType().simpleString(), condition.right().dataType().simpleString()}
    assert len(sides) == 1
    return sides.pop()
