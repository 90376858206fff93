"""Tuples that are drawn for their values: each by itself with its partners, whatever else the query has."""

import numpy as np
import pytest
from support.drawn_values import TWO, X, Y, estimates

from skimql.optimizer.plan import ValueDraw

CASES = {
    "one table": (f"SUM(r.x) {TWO}", (X,)),
    "the other table": (f"SUM(s.y) {TWO}", (Y,)),
    "two tables": (f"SUM(r.x), SUM(s.y) {TWO}", (X, Y)),
    "two expressions": (f"SUM(r.x), SUM(-r.x) {TWO}", (X, ValueDraw(0, "-`x`", 0.5, 1.0))),
    "a filter": (f"SUM(r.x) {TWO} WHERE s.y > 0 AND r.l < 30", (X,)),
    "groups": (f"r.g, SUM(r.x) {TWO} GROUP BY r.g", (X,)),
    "groups of both": (f"r.g, s.h, SUM(r.x), SUM(s.y) {TWO} GROUP BY r.g, s.h", (X, Y)),
    "a table with itself": ("SUM(r.x) FROM r JOIN r t ON r.k = t.k", (X,)),
    "tables beyond": (f"SUM(r.x) {TWO} JOIN c ON r.l = c.l", (X,)),
    "three tables": (f"SUM(r.x), SUM(s.y) {TWO} JOIN r t ON s.k = t.k", (X, Y)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_sum_of_values_that_are_all_drawn_for_certain_is_there_whatever_keys_are_sampled(case):
    """But for keys that the tuples looked at find almost surely, which are weighed by that chance."""
    sql, draws = CASES[case]
    for seed in range(3):
        found, run = estimates(sql, draws, seed)
        truth = {row[: len(run.query.groups)]: row[len(run.query.groups) :] for row in run.exact().rows}
        assert {repr(g) for g in found} == {repr(g) for g in truth}
        by_group = {repr(g): cells for g, cells in truth.items()}
        for group, cells in found.items():
            values = [float(c.value) for c in cells]
            assert values == pytest.approx([float(c.value) for c in by_group[repr(group)]], rel=1e-6)


def test_what_is_drawn_by_chance_has_no_bias():
    """60 seeds; the mean within 5 standard errors of the truth. COUNT is not touched by draws of values."""
    sql = f"COUNT(*), SUM(r.x), SUM(s.y * s.y) {TWO} WHERE s.k <> 5"
    draws = ValueDraw(0, "`x`", 300.0, 20_000.0), ValueDraw(1, "`y` * `y`", 50.0, 50_000.0)
    seen = []
    for seed in range(60):
        found, run = estimates(sql, draws, seed, 0.2)
        ((cells),) = found.values()
        seen.append([float(c.value) for c in cells])
    truth = np.array([float(c.value) for c in run.exact().rows[0]])
    errors = np.array(seen) - truth
    assert (np.abs(errors.mean(axis=0)) <= 5 * errors.std(axis=0) / np.sqrt(len(seen))).all()
    without = [float(estimates(sql, (), seed, 0.2)[0][()][0].value) for seed in range(5)]
    assert [row[0] for row in seen[:5]] == pytest.approx(without)


@pytest.mark.parametrize("draws", [(), (ValueDraw(0, "`x`", 300.0, 1500.0),)])
def test_decimals_leave_as_much_room_for_what_is_unseen_as_integers(draws):
    """Contributions are of 100 times the values, and so must be what bounds those that are not seen."""
    found = []
    for table in ("r", "q"):
        cells, _ = estimates(
            f"SUM({table}.x), AVG({table}.x) FROM {table} JOIN s ON {table}.k = s.k", draws, 3
        )
        found.append([(c.value, c.low, c.high) for c in cells[()]])
    assert found[0] == [pytest.approx(own) for own in found[1]]
