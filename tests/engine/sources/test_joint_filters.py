"""How filters of two tables go together, by the tuples of some keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.engine.memory_backend.expressions import passing
from skimql.engine.sources.joint_filters import TUPLES, Filtered, filters_together

ORDERS, LINES = 60_000, 4


def evaluate(condition, table):
    kept = passing(condition, table, "UTC")
    return pa.array([True] * table.num_rows) if kept is None else kept


def tables(folder, spread=1, seed=1, shuffled=False):
    """Orders with a day, and lines that are sent some days later; keys `spread` apart."""
    random = np.random.default_rng(seed)
    keys, day = spread * np.arange(ORDERS), random.integers(0, 1000, ORDERS)
    lines = np.repeat(np.arange(ORDERS), LINES)
    sent = day[lines] + random.integers(1, 100, lines.size)
    orders = pa.table({"OK": keys, "day": day})
    of_lines = pa.table({"lk": keys[lines], "sent": sent, "name": np.where(sent % 2, "odd", "even")})
    if shuffled:
        of_lines = of_lines.take(random.permutation(of_lines.num_rows))
    for name, table in (("orders", orders), ("lines", of_lines)):
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=10_000)
    return {n: [str(folder / f"{n}.parquet")] for n in ("orders", "lines")}, day, lines, sent


@pytest.mark.parametrize("spread", [1, 1 << 40])
def test_filters_that_exclude_each_other_leave_less_than_their_shares(tmp_path, spread):
    paths, day, lines, sent = tables(tmp_path, spread)
    before, after = day < 500, sent > 500
    both = float(np.mean(before[lines] & after))
    found = filters_together(
        [
            Filtered(paths["lines"], "lk", "`sent` > 500", float(after.mean())),
            Filtered(paths["orders"], "ok", "`day` < 500", float(before.mean())),
        ],
        evaluate,
    )
    assert found.times == pytest.approx(both / (after.mean() * before.mean()), rel=0.15)
    assert found.times < 0.3
    assert 0.0 < found.deviation < 0.1


def test_independent_filters_are_as_if_they_were_and_texts_are_compared(tmp_path):
    paths, day, *_ = tables(tmp_path)
    share = float(np.mean(day < 700))
    found = filters_together(
        [
            Filtered(paths["lines"], "lk", "`name` = 'odd'", 0.5),
            Filtered(paths["orders"], "ok", "`day` < 700", share),
        ],
        evaluate,
    )
    assert found.times == pytest.approx(1.0, rel=0.1)


def test_ranges_that_differ_are_told_by_the_deviation(tmp_path):
    """Keys in the order of time: some ranges pass as a whole, others not at all."""
    paths, *_ = tables(tmp_path)
    condition = f"`lk` < {ORDERS // 2}"
    found = filters_together(
        [Filtered(paths["lines"], "lk", condition, 0.5), Filtered(paths["orders"], "ok", None, 1.0)], evaluate
    )
    assert found.deviation > 0.2


def test_what_cannot_be_looked_at_tells_nothing(tmp_path):
    paths, *_ = tables(tmp_path)
    lines = Filtered(paths["lines"], "lk", "`sent` > 500", 0.5)
    assert filters_together([lines, Filtered(paths["orders"], "ok", "`day` < 0", 0.1)], evaluate) is None
    assert filters_together([lines, Filtered(paths["orders"], "nowhere", None, 1.0)], evaluate) is None
    assert filters_together([lines, Filtered(["nowhere.parquet"], "ok", None, 1.0)], evaluate) is None
    assert filters_together([lines, Filtered([], "ok", None, 1.0)], evaluate) is None
    texts = Filtered(paths["lines"], "name", None, 1.0)
    assert filters_together([texts, Filtered(paths["orders"], "ok", None, 1.0)], evaluate) is None
    unknown = Filtered(paths["orders"], "ok", "no_such_function(`day`)", 0.5)
    assert filters_together([lines, unknown], evaluate) is None


def test_a_table_in_no_order_is_looked_at_no_further(tmp_path):
    paths, *_ = tables(tmp_path, shuffled=True)
    lines = Filtered(paths["lines"], "lk", "`sent` > 500", 0.5)
    orders = Filtered(paths["orders"], "ok", "`day` < 500", 0.5)
    assert filters_together([lines, orders], evaluate) is None
    assert filters_together([orders, lines], evaluate) is None
    assert TUPLES < 10_000, "of which ranges are made within row groups"
