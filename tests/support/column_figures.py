"""Statistics of small relations for planner tests: everything known exactly, or as little as asked for."""

from __future__ import annotations

import numpy as np

from skimql.optimizer.messages import JoinClass, JoinTree
from skimql.optimizer.prediction.figures import Figures
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics, complete
from skimql.sketches.samples.two_level_plan import Candidates


def exact_attribute(weights):
    """All keys 0, 1, ... of an attribute with their weights, as if all were heavy."""
    w = np.asarray(weights, np.int64)
    squares = w.astype(float)
    return AttributeStatistics(
        float(np.count_nonzero(w)), float(squares @ squares), Candidates(np.arange(w.size), w, 0.0)
    )


def exact_relation(*weights, joint=None):
    """A relation of which every attribute is known in full; `joint` is F2 over the attributes' combinations."""
    return RelationStatistics(
        float(np.sum(weights[0])),
        tuple(map(exact_attribute, weights)),
        joint_self_join_size=joint,
        source="exact",
    )


def counted(tuples, *distinct, scanned=None):
    """A relation of which only the numbers of tuples and keys are known."""
    attributes = tuple(AttributeStatistics(float(d)) for d in distinct)
    return RelationStatistics(float(tuples), attributes, scanned=scanned, source="spark column statistics")


def one_class(tables, name="k"):
    """So many tables on one key."""
    return JoinTree(tables, (JoinClass(name, tuple(range(tables))),))


def chain(tables):
    """Tables joined one to the next, each time on another key."""
    return JoinTree(tables, tuple(JoinClass(f"k{i}", (i, i + 1)) for i in range(tables - 1)))


def figures_of(tree, statistics):
    """The figures of a tree from its relations' statistics."""
    return Figures(tree, [complete(s, len(tree.classes_of(v))) for v, s in enumerate(statistics)])
