"""Questions that kept samples of one class answer, beside hash sketches of the tables beyond it, without Spark."""

from __future__ import annotations

import numpy as np
import pytest
from support.kept import remember
from support.kept_kinds import of_table

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.form import Groups
from skimql.engine.spark.own import OwnSpark

RNG = np.random.default_rng(7)
LEFT = (RNG.zipf(1.2, 20_000) % 3_000).astype(np.int64)
VALUES = RNG.integers(0, 50, 20_000)
GROUP = RNG.integers(0, 3, 20_000)
GROUPS = Groups(("`g`",), ("bigint",), (("0",), ("1",), ("2",)), ())
KEYS = {"key_sample": {}, "two_level": {"parameters": (("dense", 2),)}}
HUB = RNG.integers(0, 3_000, 8_000), RNG.integers(0, 400, 8_000)
FAR = RNG.integers(0, 400, 3_000)
OF_FAR = np.bincount(FAR, minlength=400)
CHAIN = "FROM t JOIN h ON t.k = h.k JOIN w ON h.l = w.l"
EACH = "COUNT(*) AS n, SUM(t.v) AS s, AVG(t.v) AS a, SUM(h.v) AS hv, SUM(t.v + h.v) AS total"
HUB_VALUES = RNG.integers(0, 9, 8_000)


@pytest.fixture
def asked(monkeypatch):
    """A session on some kept sketches for which asking for Spark fails the test."""

    def make(*sketches):
        monkeypatch.setattr(Session, "spark", property(lambda self: pytest.fail("Spark was asked for")))
        monkeypatch.setattr(OwnSpark, "running", lambda self: None)
        return Session(catalog=remember(Catalog(), *sketches))

    return make


def sampled(name, table, columns, summed, *by, capacity=900, sample=0, **changes):
    sizes = {"rows": 1, "buckets": capacity, "parameters": (("dense", 0), ("sampled", sample))}
    return of_table(name, "sample_sketch", table, columns, summed, *by, **sizes, **changes)


def over_classes(capacity=2_400, buckets=350, by=()):
    """Three tables over two classes: t and h sampled by k, w a sketch of l."""
    far = of_table(
        "w",
        "hash",
        "w",
        {"l": FAR},
        None,
        rows=11,
        buckets=buckets,
        limit_bytes=1 if buckets < 1_000 else 1 << 20,
    )
    return (
        sampled("t", "t", {"k": LEFT}, VALUES, *by, capacity=capacity),
        sampled("h", "h", {"l": HUB[1], "k": HUB[0]}, HUB_VALUES, capacity=2 * capacity, sample=1),
        far,
    )


def truth_over_classes(of=None):
    of = np.ones(len(LEFT), bool) if of is None else of
    counts, sums = np.bincount(LEFT[of], minlength=3_000), np.bincount(LEFT[of], VALUES[of], 3_000)
    n, s = counts[HUB[0]] @ OF_FAR[HUB[1]], sums[HUB[0]] @ OF_FAR[HUB[1]]
    hub = (counts[HUB[0]] * HUB_VALUES) @ OF_FAR[HUB[1]]
    return int(n), s, s / n, int(hub), s + hub


def test_sampled_tables_and_sketches_beyond_answer_over_several_classes(asked):
    answer = asked(*over_classes()).sql(f"SELECT APPROXIMATE {EACH} {CHAIN}")
    assert answer.method == "sample_sketch"
    for cell, truth in zip(answer.rows[0], truth_over_classes(), strict=True):
        assert cell.low <= truth <= cell.high
        assert abs(cell.value - truth) < 0.35 * truth
    assert (
        answer.rows
        == asked(*over_classes()).sql(f"SELECT APPROXIMATE {EACH} {CHAIN} USING sample_sketch").rows
    )
    whole = asked(*over_classes(capacity=9_000, buckets=4_096)).sql(f"SELECT APPROXIMATE {EACH} {CHAIN}")
    assert [c.exact for c in whole.rows[0]] == [True] * 5
    assert [float(c.value) for c in whole.rows[0]] == pytest.approx(truth_over_classes())


def test_sampled_tables_answer_groups_and_beside_key_samples(asked):
    by_group = f"SELECT APPROXIMATE t.g, COUNT(*) AS n, SUM(t.v) AS s {CHAIN} GROUP BY t.g"
    for group, n, s in asked(*over_classes(by=(GROUP, GROUPS))).sql(by_group).rows:
        truth = truth_over_classes(group == GROUP)
        assert n.low <= truth[0] <= n.high
        assert s.low <= truth[1] <= s.high
    t, hub, far = over_classes()
    for beside in (
        t,
        *(of_table("t", m, "t", {"k": LEFT}, VALUES, rows=1, buckets=1_000, **c) for m, c in KEYS.items()),
    ):
        answer = asked(beside, hub, far).sql(f"SELECT APPROXIMATE COUNT(*) {CHAIN}")
        assert answer.method == "sample_sketch"
        assert answer.rows[0][0].low <= truth_over_classes()[0] <= answer.rows[0][0].high


@pytest.mark.parametrize(
    ("tables", "question"),
    [
        ((0, 1), f"SELECT APPROXIMATE COUNT(*) {CHAIN}"),
        ((0, 2), f"SELECT APPROXIMATE COUNT(*) {CHAIN}"),
        ((0, 1, 2), "SELECT APPROXIMATE COUNT(*) FROM t JOIN h ON t.k = h.k JOIN w ON h.l = w.l JOIN w x ON h.l = x.l"),
        ((0, 1, 2), f"SELECT APPROXIMATE COUNT(*) {CHAIN} USING convolution"),
        ((0, 1, 2), "SELECT APPROXIMATE COUNT(*) FROM t JOIN h ON t.k = h.k"),
        ((0, 1, 2), f"SELECT APPROXIMATE COUNT(*) {CHAIN} WHERE t.v > 3"),
    ],
    ids=["a table lacks", "the hub lacks", "two sketches of one family", "another method", "a key that is not asked for", "another filter"],
)  # fmt: skip
def test_sampled_tables_that_do_not_fit_are_not_used(asked, tables, question):
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        asked(*(over_classes()[i] for i in tables)).sql(question)
