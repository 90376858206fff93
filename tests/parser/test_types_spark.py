"""The fixture of comparison types is what the running Spark's analyser says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

SPARK = json.loads((Path(__file__).parents[1] / "fixtures" / "spark_comparison_types.json").read_text())
NAMES = sorted({pair.split(" | ")[0] for pair in SPARK["ansi"]})


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["ansi", "legacy"])
def test_the_fixture_is_what_spark_analyses(spark, mode):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true" if mode == "ansi" else "false")
    try:
        frame = spark.createDataFrame([], ", ".join(f"c{i} {name}" for i, name in enumerate(NAMES)))
        pairs = {(f"c{i}", f"c{j}"): f"{a} | {b}" for i, a in enumerate(NAMES) for j, b in enumerate(NAMES)}
        taken = [pair for pair, name in pairs.items() if SPARK[mode][name]]
        for pair, found in zip(taken, _compared(frame, taken), strict=True):
            assert found == SPARK[mode][pairs[pair]], pairs[pair]
        # Of what Spark refuses each is asked by itself: one refusal says nothing about another. What both modes refuse
        # is asked in one order here and in the other there.
        other = SPARK["legacy" if mode == "ansi" else "ansi"]
        for pair in pairs.keys() - set(taken):
            left, right = pairs[pair].split(" | ")
            if not other[pairs[pair]] and (left <= right) != (mode == "ansi"):
                continue
            with pytest.raises(AnalysisException):
                _analysed(frame, [pair])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def _analysed(frame, pairs):
    return frame.selectExpr(*(f"{left} = {right}" for left, right in pairs))._jdf.queryExecution().analyzed()


def _compared(frame, pairs):
    """The type that both sides of each ``left = right`` have in the analysed plan."""
    # Spark folds nothing here: each is an alias of EqualTo with the casts it added.
    items = _analysed(frame, pairs).projectList()
    for n in range(len(pairs)):
        condition = items.apply(n).child()
        sides = {condition.left().dataType().simpleString(), condition.right().dataType().simpleString()}
        assert len(sides) == 1
        yield sides.pop()
