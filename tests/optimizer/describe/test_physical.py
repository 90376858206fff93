"""A physical plan as text, JSON values and a diagram: all of it, and no figure that is not known."""

import json
import math

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.choose import ClassSample, choose
from skimql.optimizer.describe.physical import (
    describe_attempts,
    describe_physical,
    draw_physical,
    physical_dict,
)
from skimql.optimizer.physical import (
    Attempted,
    ExactRun,
    GroupValues,
    MaterializedJoin,
    Nothing,
    PhysicalPlan,
    Predicted,
    SampleJoin,
    SketchJoin,
)
from skimql.parser.diagram import Diagram

QUERY = query("COUNT(*) FROM x JOIN y ON x.id = y.id GROUP BY n", XYZ)
BUILD = choose(QUERY, 1, 11, 64)
SAMPLED = choose(QUERY, 1, 0, 0, sample=ClassSample(0, 0.01))
GROUPS = (GroupValues(0, "x", ("`n`",)),)
ATTEMPTS = [
    (SketchJoin("hash", BUILD, Predicted(0.02, 1.5, 4096)), "hash, predicted ±2.00%, 4 KB, 1.5 CPU s"),
    (SampleJoin("key_sample", SAMPLED, expected=(1e6, 2e6), enlarges=True), "key sample, one in 100 keys"),
    (MaterializedJoin(BUILD, ("s", "r")), "from the catalog: s, r"),
    (ExactRun("SELECT 1"), "the exact run, by Spark"),
    (Nothing("x > 1 and x < 0"), "known: x > 1 and x < 0"),
]


@pytest.mark.parametrize(("attempt", "told"), ATTEMPTS)
def test_each_attempt_is_told_with_what_is_aimed_at(attempt, told):
    text = describe_physical(PhysicalPlan(QUERY, GROUPS, attempt, error=0.05), 0.0)
    assert text.startswith(f"answer: {told}; aimed at ±0.05 at 0.95 confidence\n  groups of x by `n`")
    assert "nan" not in text


@pytest.mark.parametrize(("attempt", "told"), ATTEMPTS)
def test_values_are_json_and_unknown_figures_null(attempt, told):
    run = (Attempted(attempt, "missed", math.inf, 100, 1.0, "too few"),)
    values = physical_dict(PhysicalPlan(QUERY, GROUPS, attempt), run)
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["attempt"]["method"] == attempt.method
    assert values["run"][0]["half_width"] is None


def test_what_was_run_stands_beside_what_was_predicted():
    first = Attempted(ATTEMPTS[0][0], "missed", 0.3, 2048, 0.5)
    lines = describe_attempts([first, Attempted(ExactRun("SELECT 1"), "met", 0.0, 0, 2.0)])
    assert lines == [
        "run:",
        "  1. hash: missed",
        "     predicted ±2.00%, 4 KB, 1.5 CPU s",
        "     given ±30.00%, 2 KB, 0.5 s",
        "  2. the exact run, by Spark: met",
        "     predicted exact",
        "     given exact, 0 KB, 2 s",
    ]
    assert describe_attempts([]) == []


def test_a_diagram_has_a_box_for_the_plan_each_group_and_each_run():
    plan = PhysicalPlan(QUERY, GROUPS, ATTEMPTS[0][0])
    drawn = Diagram()
    draw_physical(plan, [Attempted(ExactRun("SELECT 1"), "met", 0.0, 0, 2.0)], drawn)
    text = drawn.mermaid()
    assert text.count("-->") == 2
    assert '"' not in "".join(part for part in text.split('"')[1::2])
    assert "`" not in text
