"""What is built of each table by itself: of a plan, and of a choice with samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.column_figures import counted
from support.questions import query

from skimql.optimizer.apart import as_planned, of_choice, of_plan
from skimql.optimizer.candidates.enumerate import Objective, choose_method
from skimql.optimizer.choose import choose
from skimql.optimizer.messages import tree_of
from skimql.optimizer.plan import Weight
from skimql.parser.join_graph import Column, TableSchema

SCHEMA = {t: TableSchema(t, tuple(Column(c, "bigint") for c in "kjv")) for t in "abc"}
CHAIN = query("SUM(b.v) FROM a, b, c, c d WHERE a.k = b.k AND b.j = c.j AND b.j = d.j", SCHEMA)
SUM = (Weight(), Weight("`v`"), Weight("`v`", presence=True))


def choice(asked, statistics, method, size):
    objective = Objective(size_bytes=size, ordered=False, method=method, columns=2)
    return choose_method(tree_of(asked.graph), statistics, objective).taken


def test_synopses_of_one_relation_are_one_with_all_weights():
    asked = query("SUM(a.v), COUNT(*) FROM a, b, a x WHERE a.k = b.k AND b.j = x.j", SCHEMA)
    made = of_plan(choose(asked, 1, 11, 64))
    assert [(s.table, s.method, len(s.weights)) for s in made] == [
        ("a", "hash", 3),
        ("b", "convolution", 1),
        ("a", "hash", 1),
    ]
    assert all(s.weights[0] == Weight() for s in made)
    two = query("SUM(a.v) FROM a, b WHERE a.k = b.k", SCHEMA)
    assert [s.method for s in of_plan(choose(two, 1, 11, 64), "skimmed")] == ["skimmed", "skimmed"]


def test_a_grouped_table_is_apart_from_the_same_without_groups():
    asked = query("a.v, COUNT(*) FROM a, a x WHERE a.k = x.k GROUP BY a.v", SCHEMA)
    made = of_plan(choose(asked, 1, 11, 64))
    assert sorted(s.groups for s in made) == [(), ("`v`",)]
    values = query("COUNT(DISTINCT v) FROM a", SCHEMA)
    typed = replace(values, aggregates=tuple(replace(a, types=("bigint",)) for a in values.aggregates))
    (level,) = of_plan(choose(typed, 1, 11, 64))
    assert (level.method, level.weights) == ("distinct", (Weight(),))


@pytest.mark.parametrize("size", [60_000, 4_000_000])
def test_sample_sketch_samples_one_class_and_sketches_the_tables_beyond_apart(size):
    statistics = [counted(1e4, 1e3), counted(1e4, 1e3, 300), counted(1e4, 300), counted(1e4, 300)]
    taken = choice(CHAIN, statistics, "sample_sketch", size)
    made = of_choice(CHAIN, taken, 1, True)
    hub = next(s for s in made if s.table == "b")
    assert (hub.method, hub.rows, hub.weights) == ("sample_sketch", 1, SUM)
    sampled = hub.attributes[dict(hub.parameters)["sampled"]].class_name
    assert all(
        s.attributes[0].class_name == sampled for s in made if s.method == "sample_sketch" and s is not hub
    )
    beyond = [s for s in made if s.method == "hash"]
    # Two tables of one class hash apart; a map that is exact just fits.
    assert len({s.attributes[0].class_name for s in beyond}) == len(beyond)
    for own, planned in zip(beyond, taken.sample.beyond, strict=True):
        assert planned.nbytes <= 8 * own.rows * own.buckets < planned.nbytes + 8 * own.rows
    shown = as_planned(choose(CHAIN, 1, 11, 64), made)
    assert {s.method for s in shown.synopses} == {s.method for s in made}
    assert shown.method == "sample_sketch"


@pytest.mark.parametrize("method", ["key_sample", "two_level"])
def test_samples_of_one_class_have_their_capacities_and_dense_keys(method):
    asked = query("SUM(a.v) FROM a, b WHERE a.k = b.k", SCHEMA)
    taken = choice(asked, [counted(1e6, 1e5)] * 2, method, 100_000)
    dense = np.array([9, 3, 9])
    sample = replace(taken.sample, dense_keys=(dense, dense[:1]), capacities=(70, 80))
    made = of_choice(asked, replace(taken, sample=sample), 1, True)
    assert [(s.buckets, s.weights) for s in made] == [(70, SUM), (80, (Weight(),))]
    if method == "two_level":
        assert [(s.dense, s.parameters) for s in made] == [((3, 9), (("dense", 2),)), ((9,), (("dense", 1),))]
