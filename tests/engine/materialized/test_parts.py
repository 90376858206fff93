"""Sketches of cells as one of their relation: where all cells are there, with the counters of the whole."""

from dataclasses import replace

import numpy as np
import pytest
from support.kept import kept

from skimql.engine.materialized.parts import BESIDE, added_up, of_all_parts
from skimql.sketches.joins.convolution import ConvolutionSpec

A = np.random.default_rng(5).integers(0, 40, 300)
B = np.random.default_rng(6).integers(0, 40, 300)
CELLS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def of_cell(cell, name=None, **given):
    """The tuples of which the keys are in these halves of the domains."""
    left, right = cell
    there = np.equal(A % 2, left) & np.equal(B % 2, right)
    name = name or "c" + "".join(map(str, cell))
    return kept(name, "t", {"a": A[there], "b": B[there]}, cell=cell, group="w", **given)


def names(heads):
    return [h.name.split(BESIDE) for h in heads]


def test_all_cells_are_one_sketch_and_those_of_no_parts_stay():
    cells = [of_cell(c).head for c in reversed(CELLS)]
    alone = kept("alone", "t", {"a": A}).head
    first, whole = of_all_parts([cells[0], alone, *cells[1:]])
    assert first is alone
    assert names([whole]) == [["c00", "c01", "c10", "c11"]]
    assert (whole.tuples, whole.cell, whole.exact) == (300, (), True)
    assert whole.nbytes == sum(c.nbytes for c in cells)


@pytest.mark.parametrize("missing", range(3))
def test_a_relation_without_one_of_its_cells_has_no_sketch(missing):
    heads = [of_cell(c).head for c in CELLS]
    del heads[missing]
    assert of_all_parts(heads) == []


@pytest.mark.parametrize(
    "other",
    [
        {"table": "u"},
        {"filter": "a > 1"},
        {"group": "v"},
        {"buckets": 32},
        {"method": "agms"},
        {"attributes": ()},
        {"families": ()},
        {"measures": (kept("t", "t", {"a": A}, summed=("v", B)).head.measures[1],)},
    ],
)
def test_cells_of_different_relations_or_layouts_are_not_one(other):
    heads = [of_cell(c).head for c in CELLS]
    assert of_all_parts([*heads[:3], replace(heads[3], **other)]) == []


def test_of_two_sketches_of_a_cell_the_one_of_more_rows_is_taken():
    twice = [of_cell(CELLS[1], f"r{rows}", rows=rows).head for rows in (5, 13, 7)]
    heads = [of_cell(c).head for c in CELLS if c != CELLS[1]]
    assert names(of_all_parts([*twice, *heads])) == [["c00", "r13", "c10", "c11"]]


@pytest.mark.parametrize("sparse", [True, False], ids=["exact maps", "counters"])
def test_the_cells_add_up_to_the_sketch_of_the_relation(sparse):
    found = added_up([of_cell(c, sparse=sparse) for c in CELLS])
    # By itself the map of all tuples is larger than so few counters; of cells that are maps it is one nevertheless.
    whole = kept("t", "t", {"a": A, "b": B}, sparse=sparse, buckets=1024 if sparse else 64)
    assert found.head.exact is sparse
    assert found.built[0].tally == whole.built[0].tally == found.head.measures[0].tally
    expected = whole.built[0].linear.state()
    state = found.built[0].linear.state()
    assert {n: v.tolist() for n, v in state.items()} == {n: v.tolist() for n, v in expected.items()}


def test_cells_of_different_numbers_of_rows_have_the_rows_that_all_have():
    found = added_up([of_cell(c, sparse=False, rows=r) for c, r in zip(CELLS, (11, 5, 7, 11), strict=True)])
    whole = kept("t", "t", {"a": A, "b": B}, sparse=False)
    assert found.head.rows == 5
    assert found.built[0].linear.spec == ConvolutionSpec(found.head.families, 5, 64)
    counters = whole.built[0].linear.state()["counters"][:5]
    assert np.array_equal(found.built[0].linear.state()["counters"], counters)


def test_an_exact_map_among_counters_is_added_to_them():
    found = added_up([of_cell(c, sparse=c == CELLS[2]) for c in CELLS])
    whole = kept("t", "t", {"a": A, "b": B}, sparse=False)
    assert not found.head.exact
    assert np.array_equal(
        found.built[0].linear.state()["counters"], whole.built[0].linear.state()["counters"]
    )
