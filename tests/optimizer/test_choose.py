"""From a choice to the plan that carries it out."""

import pytest
from support.column_figures import counted
from support.questions import query

from skimql.optimizer.candidates.enumerate import Objective, choose_method
from skimql.optimizer.choose import plan_of
from skimql.optimizer.messages import tree_of
from skimql.optimizer.methods import CHOSEN
from skimql.parser.join_graph import Column, TableSchema

SCHEMA = {t: TableSchema(t, tuple(Column(c, "bigint") for c in "kjv")) for t in "abc"}
ASKED = query("SUM(a.v) FROM a, b, c WHERE a.k = b.k AND b.j = c.j", SCHEMA)


def planned(statistics, **objective):
    objective.setdefault("methods", tuple(m for m in CHOSEN if m != "exact_run"))
    choice = choose_method(tree_of(ASKED.graph), statistics, Objective(**objective))
    return choice, plan_of(ASKED, choice, seed=3)


def test_a_sampled_class_becomes_the_plan_s_sample():
    choice, plan = planned(
        [counted(1e8, 1e7), counted(1e8, 1e7, 1e7), counted(1e8, 1e7)], relative_error=0.05
    )
    assert choice.taken.method == "sampled_messages"
    assert plan.sample.rate == choice.taken.sample.probability
    assert plan.sample.class_name == tree_of(ASKED.graph).classes[choice.taken.sample.joined].name
    assert len(plan.sample.members) == 2


def test_exact_messages_become_the_plan_s_messages():
    choice, plan = planned([counted(1e8, 100), counted(1e4, 100, 50), counted(50, 50)], relative_error=0.05)
    assert choice.taken.method == "exact"
    assert len(plan.synopses[0].messages) == 1
    assert plan.synopses[0].messages[0].messages[0].table == "c"
    assert plan.sample is None


def test_a_forced_sketch_has_the_size_of_the_choice():
    choice, plan = planned(
        [counted(1e8, 1e7), counted(1e8, 1e7, 1e7), counted(1e8, 1e7)],
        size_bytes=300_000,
        method="convolution",
        columns=2,  # a SUM has its argument and whether there is one
    )
    assert {s.buckets for s in plan.synopses} == {choice.taken.buckets}
    assert sum(8 * s.rows * s.buckets for s in plan.synopses) <= 300_000


def test_an_exact_run_has_no_plan():
    statistics = [counted(1e8, 1e7), counted(1e8, 1e7, 1e7), counted(1e8, 1e7)]
    with pytest.raises(ValueError, match="exact_run"):
        planned(statistics, relative_error=0.05, method="exact_run", methods=("exact_run",))
