"""Random questions with random clauses in memory: exact where said so, covered as promised, refused with a way out.

`benchmarks.combinations` runs thousands of them.
"""

import sys
from pathlib import Path

import pytest
from support.theory import most_misses

ROOT = Path(__file__).parents[1]
# 1667: a sample of all keys that is taken again, smaller, to fit a size.
SEEDS = (*range(110), 1667)


@pytest.fixture
def combinations(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    from benchmarks import combinations

    return combinations


def test_every_combination_is_answered_as_promised_or_refused(combinations):
    records = [combinations.record_of(seed) for seed in SEEDS]
    assert not [(r["seed"], r["sql"], r["fault"]) for r in records if r["fault"]]
    answered = [r for r in records if r["outcome"] == "answered"]
    assert len(answered) > len(SEEDS) / 2
    assert len({r["method"] for r in answered}) >= 8
    # The values of one question come from one draw: they are one trial.
    tried = [r for r in answered if r["estimated"]]
    assert sum(r["missed"] > 0 for r in tried) <= most_misses(len(tried), 0.05, 1e-6)


def test_a_wrong_value_is_seen(combinations, monkeypatch):
    from skimql.sketches.joins import estimate

    known = estimate.known_sum
    monkeypatch.setattr("skimql.engine.results.estimator.known_sum", lambda *a: (known(*a) or 0) + 1)
    assert any(combinations.record_of(seed)["fault"] for seed in range(12))
