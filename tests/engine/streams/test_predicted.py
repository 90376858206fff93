"""How wide the interval of a view is to be expected: whole sketches and those of parts, none of what has no formula."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.continuous import MemorySpark, declared_set, stream_of
from support.streams import zipf

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.predicted import half_width, predicted_half_width
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


def squares(counters):
    return float(np.median(np.square(counters.astype(float)).sum(axis=1)))


def test_whole_sketches_have_the_product_of_their_self_join_sizes(tmp_path):
    found, plan, joined = width(tmp_path)
    left, right = (b.sketch.dense().counters for b in joined.built)
    rows, buckets = left.shape
    assert not plan.partitions
    assert found == half_width(squares(left) * squares(right), rows, buckets, 0.95)


def test_parts_add_up_their_variances(tmp_path):
    found, plan, joined = width(tmp_path, "PARTITION INTO 3")
    terms = plan.aggregates[0].total
    assert len(terms) == 3
    pairs = [[joined.built[i].sketch.dense().counters for i in t.synopses] for t in terms]
    rows, buckets = min(len(left) for left, _ in pairs), pairs[0][0].shape[1]
    products = sum(squares(left) * squares(right) * rows / len(left) for left, right in pairs)
    assert found == half_width(products, rows, buckets, 0.95)
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
