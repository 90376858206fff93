"""Expressions over estimates."""

import pytest

from skimql.parser.expressions import (
    OPERATORS,
    Aggregated,
    Constant,
    Grouped,
    Operation,
    has_aggregate,
    parts_of,
)

RATIO = Operation("/", (Aggregated(0), Operation("nullif", (Aggregated(1), Constant(0)))))


def test_parts_are_the_expression_and_all_in_it():
    assert list(parts_of(RATIO)) == [RATIO, Aggregated(0), RATIO.operands[1], Aggregated(1), Constant(0)]


def test_an_estimate_anywhere_makes_an_estimate():
    assert has_aggregate(RATIO)
    assert not has_aggregate(Operation("+", (Grouped(0), Constant(1))))


def test_operators_have_one_name_each():
    assert len(set(OPERATORS)) == len(OPERATORS)


@pytest.mark.parametrize("part", [Aggregated(0), Grouped(0), Constant(None), RATIO])
def test_expressions_are_values(part):
    assert hash(part) == hash(eval_again(part))


def eval_again(part):
    return (
        Operation(part.operator, part.operands)
        if isinstance(part, Operation)
        else type(part)(*[getattr(part, s) for s in part.__slots__])
    )
