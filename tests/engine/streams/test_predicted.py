"""How wide the interval of a view is to be expected: whole sketches and those of parts, none of what has no formula."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.continuous import MemorySpark, declared_set, stream_of
from support.streams import zipf

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.predicted import half_width, predicted_half_width, rotated, within_two
from skimql.engine.streams.store import continuous, load
from skimql.engine.streams.view_answer import joined_of
from skimql.engine.streams.views import planned
from skimql.sketches.intervals.interval import averaged, median_interval

PAIRS = "SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k USING hash"
TABLES = {
    n: pa.table({"k": np.random.default_rng(i).permutation(2000)[np.repeat(np.arange(2000), zipf(2000, 1.0, 20_000))]})
    for i, n in enumerate("ab")
}  # fmt: skip


def width(folder, into="", sparse=False, text=PAIRS):
    """What is predicted, and the sketches."""
    catalog = Catalog(folder / "catalog")
    sql = f"CREATE CONTINUOUS VIEWS w (q AS ({text})) SIZE 64 KB MINIMIZE MAX ERROR {into}"
    declared_set(catalog, [stream_of(n, "k BIGINT") for n in "ab"], sql, first=TABLES, sparse=sparse)
    for name, table in TABLES.items():
        MemorySpark(catalog, name, folder / name).run([table])
    found = continuous(catalog)
    view = planned(found.views["q"], found.streams)
    joined = joined_of(view, {n: load(catalog, found.streams[n], 1).state for n in "ab"})
    return predicted_half_width(view.plan, joined, 0.95), view.plan, joined


def reported(plan, joined):
    """The half-width of the answer itself."""
    return joined.total(plan.aggregates[0].total, 0.95).half_width


def test_whole_sketches_are_as_wide_as_the_answer_is(tmp_path):
    found, plan, joined = width(tmp_path)
    assert not plan.partitions
    assert 0.5 < found / reported(plan, joined) < 2.0


def test_parts_are_as_wide_as_their_sum_is(tmp_path):
    found, plan, joined = width(tmp_path, "PARTITION INTO 3")
    assert len(plan.aggregates[0].total) == 3
    assert 0.5 < found / reported(plan, joined) < 2.0
    # And so they are narrower than whole ones of the same bytes.
    assert found < width(tmp_path / "whole")[0] / 1.5


def test_what_is_exact_has_no_width(tmp_path):
    few = PAIRS.replace("USING", "WHERE a.k < 5 AND b.k < 5 USING")
    assert width(tmp_path, text=few, sparse=True)[0] == 0.0


@pytest.mark.parametrize(("rows", "confidence"), [(11, 0.95), (7, 0.9), (44, 0.95)])
def test_the_half_width_is_that_of_normal_rows_on_average(rows, confidence):
    """400 draws: the standard error of their mean is less than 2 %."""
    random, buckets, products = np.random.default_rng(3), 256, 5_000.0
    drawn = random.normal(0.0, np.sqrt(products / buckets), (400, rows))
    found = [median_interval(averaged(own, buckets, confidence), confidence) for own in drawn]
    widths = [(e.high - e.low) / 2 for e in found]
    assert half_width(products, rows, buckets, confidence) == pytest.approx(np.mean(widths), rel=0.1)


@pytest.mark.parametrize("z", [0.0, 1.0])
def test_rotated_sketches_are_off_as_sketches_of_other_hashes_are(z):
    """Of 300 pairs of sketches, and of one pair that is rotated: quartiles of the errors, which each are known to 3 %.

    At z = 1 the standard deviation is several times what quartiles say: few rows have two heavy keys in one bucket.
    """
    random, keys, rows, buckets = np.random.default_rng(1), 2000, 11, 128
    f = zipf(keys, z, 20_000).astype(float)
    g = np.roll(f, 10)

    def sketches(rows):
        slots, signs = random.integers(0, buckets, (rows, keys)), random.choice((-1.0, 1.0), (rows, keys))
        return (
            np.array([np.bincount(s, xi * w, buckets) for s, xi in zip(slots, signs, strict=True)])
            for w in (f, g)
        )

    left, right = sketches(300 * rows)
    truth = (left * right).sum(axis=1) - f @ g
    found = np.array([rotated(*sketches(rows), random) for _ in range(30)])
    for quantile in (0.25, 0.75):
        assert np.quantile(found, quantile) == pytest.approx(np.quantile(truth, quantile), rel=0.15)
    if z:
        assert truth.std() > 1.5 * (np.quantile(truth, 0.75) - np.quantile(truth, 0.25)) / 1.35


def test_one_bucket_has_nowhere_to_be_moved_to():
    one = np.ones((3, 1))
    assert not rotated(one, one, np.random.default_rng(0), 2).any()


def test_most_widths_are_within_two_of_what_is_told():
    assert within_two(np.array([3.0])) == 3.0
    # 1 to 4 and 2 to 8 hold three each, 8 to 32 two; the first is taken.
    assert within_two(np.array([8.0, 1.0, 2.0, 4.0, 30.0])) == 2.0
    assert within_two(np.zeros(3)) == 0.0
