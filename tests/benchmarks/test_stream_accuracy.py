"""Intervals of continuous views hold where the benchmark looks, and it turns red where they are too narrow."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import binom

from skimql import Estimate
from skimql.engine.streams import view_answer

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def accuracy():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
            patch.delitem(sys.modules, name)
        from benchmarks import stream_accuracy

        sums, names = stream_accuracy.VIEWS["sums"]
        for name, value in (
            ("BATCHES", 1),
            ("EVERY", 1),
            ("ROWS", 800),
            ("DOMAIN", 400),
            ("VIEWS", {"sums": (sums.replace("SIZE 32 KB", "SIZE 4 KB"), names)}),
        ):
            patch.setattr(stream_accuracy, name, value)
        yield stream_accuracy


def records(accuracy, kept, seeds, trial=None):
    """By window and aggregate."""
    study = (trial or (lambda *cell: accuracy.coverage(*cell, views=("sums",))), [(0.0, 0.2)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(accuracy.STUDIES, "coverage", study)
        trials = accuracy.run(["coverage"], range(seeds), kept)
    return {(r["window"], r["aggregate"]): r for r in accuracy.records_of(trials)}


def test_intervals_of_all_events_and_of_windows_hold_and_trials_are_run_once(accuracy, tmp_path):
    found = records(accuracy, tmp_path / "kept", 12)
    assert set(found) == {(w, a) for w in ("landmark", "sliding") for a in ("COUNT", "SUM", "AVG")}
    assert all(r["holds"] and r["seeds"] == 12 for r in found.values())
    assert records(accuracy, tmp_path / "kept", 12, trial=pytest.fail) == found


def test_intervals_of_half_the_width_turn_it_red(accuracy, tmp_path, monkeypatch):
    shown = view_answer._cell

    def halved(cell):
        cell = shown(cell)
        if not isinstance(cell, Estimate):
            return cell
        return replace(cell, low=(cell.low + cell.value) / 2, high=(cell.high + cell.value) / 2)

    monkeypatch.setattr(view_answer, "_cell", halved)
    monkeypatch.setattr(accuracy, "WINDOWS", {"landmark": {}})
    found = records(accuracy, tmp_path / "kept", 100)
    assert not all(r["holds"] for r in found.values())


def test_a_seed_misses_as_much_as_the_share_of_its_intervals(accuracy):
    """Two batches; one interval of four is beside the truth, one answer is exact, one cannot tell."""
    answers = [["COUNT", "sliding", b, s, 10.0, 9.0, 8.0, 11.0, False] for b in (9, 19) for s in (0, 1)]
    answers[3][5:8] = [13.0, 12.0, 14.0]
    answers += [
        ["COUNT", "sliding", 19, 2, 7.0, 7.0, 7.0, 7.0, True],
        ["COUNT", "sliding", 19, 3, 7.0, 7.0, -math.inf, math.inf, False],
    ]
    trials = [{"cell": (0.0, 0.2), "seed": n, "answers": answers, "predicted": []} for n in range(20)]
    (found,) = accuracy.coverage_records(trials)
    shown = [found[n] for n in ("seeds", "misses", "misses_of_a_batch", "wrong_and_exact", "undecided")]
    assert shown == [20, 5.0, 10.0, 0, 20]
    assert not found["holds"]


@pytest.mark.parametrize(("trials", "cells"), [(20, 1), (60, 150), (500, 60)])
def test_correct_intervals_miss_more_than_the_bound_in_one_run_of_a_hundred_at_most(accuracy, trials, cells):
    k = accuracy.most_misses(trials, cells)
    assert binom.sf(k, trials, 0.05) <= 0.01 / cells < binom.sf(k - 1, trials, 0.05)
