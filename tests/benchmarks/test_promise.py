"""Classes of data that the promise is held on: each one joins something, truths by hand, what is counted as what."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from skimql import Estimate

ROOT = Path(__file__).parents[2]
TUPLES = 2_000
# Classes whose tables have nothing in common.
EMPTY = {"nothing_in_common"}


@pytest.fixture(scope="module")
def promise():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
            patch.delitem(sys.modules, name)
        from benchmarks.promise import __main__ as promise

        yield promise


@pytest.fixture(scope="module")
def draws(promise):
    from benchmarks.promise.memory_run import Draw

    return {name: Draw(chosen, 0, TUPLES) for name, chosen in promise.CLASSES.items()}


def test_there_are_forty_classes_of_which_thirty_are_hostile(promise):
    kinds = [c.kind for c in promise.CLASSES.values()]
    assert kinds.count("ordinary") >= 10
    assert len(kinds) - kinds.count("ordinary") >= 30
    assert all(c.make.__doc__ for c in promise.CLASSES.values())


def test_every_class_joins_and_is_answered_by_the_products_own_plan(promise, draws):
    from benchmarks.promise.routes import ROUTES, Asked

    for name, draw in draws.items():
        (count,) = draw.truth("COUNT").values()
        assert (count == 0) == (name in EMPTY), name
        answer = Asked(draw.backend, draw.data.select("COUNT"), 0.2, ROUTES["first"], 100).answer(1)
        assert isinstance(answer.rows[0][0], Estimate), name


def test_a_class_has_the_same_tables_in_every_process_and_others_in_another_draw(promise):
    chosen = promise.CLASSES["sum_one_row"]
    one, again, other = (chosen.data(draw, TUPLES).tables["r"]["x"] for draw in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert one.max() == pytest.approx(one.sum() / 2, rel=0.01)


def test_truths_are_those_of_numpy(draws):
    for name in ("orders_items", "ten_heavy_in_both"):
        draw = draws[name]
        r, s = draw.data.tables["r"], draw.data.tables["s"]
        keys = np.bincount(s["k"], minlength=int(max(r["k"].max(), s["k"].max())) + 1)
        partners = keys[r["k"]]
        assert draw.truth("COUNT") == {"[]": partners.sum()}
        assert draw.truth("SUM") == {"[]": (partners * r["x"]).sum()}
        assert draw.truth("AVG")["[]"] == pytest.approx((partners * r["x"]).sum() / partners.sum())
        assert draw.truth("COUNT(DISTINCT)") == {"[]": np.intersect1d(r["k"], s["k"]).size}
        groups = {f"[{g}]": (partners * r["x"])[r["g"] == g].sum() for g in range(5)}
        assert draw.truth("grouped") == groups


def test_doubles_that_cancel_have_their_exact_truth(draws):
    draw = draws["doubles_that_cancel"]
    assert draw.truth("SUM") == {"[]": TUPLES - 40}


def test_a_statement_of_several_aggregates_gives_a_cell_for_each(promise):
    from benchmarks.promise.memory_run import cells

    asked = [(a, 0.2, "first") for a in ("COUNT", "SUM", "AVG", "grouped")]
    records = list(cells(promise.CLASSES["sum_one_row"], asked, range(8), TUPLES, 2, together=True))
    assert [r["aggregate"] for r in records] == ["COUNT", "SUM", "AVG", "grouped"]
    assert len({r["sql"] for r in records}) == 2
    # What is planned to be exact is the same for every seed.
    assert all(r["seeds"] in (3, 8) and not r["refused"] for r in records)


def test_aggregates_are_asked_in_one_statement(draws):
    data = draws["filtered_items"].data
    assert data.select("COUNT", "AVG") == (
        "SELECT APPROXIMATE COUNT(*) AS v0, AVG(r.x) AS v1 FROM r JOIN s ON r.k = s.k WHERE r.x > 106"
    )


def test_a_sample_that_missed_the_heavy_tuple_is_called_wrong(promise, draws):
    from benchmarks.promise.cells import faults_of, record_of, seen
    from skimql.engine.results.answer import Answer

    truth = {"[]": 100.0}

    def answered(value, low, high, certified=False):
        cell = Estimate(value, low, high, 0.95, certified, "theorem")
        return Answer(("v",), ((cell,),), method="key_sample")

    narrow = seen(answered(50.0, 49.0, 51.0), truth, 0.05, 0, 0.1)
    assert (narrow.state, narrow.wrong, narrow.covered) == ("unknown", True, False)
    wrong = seen(answered(50.0, 49.0, 51.0, certified=True), truth, 0.05, 0, 0.1)
    right = seen(answered(99.0, 97.0, 101.0, certified=True), truth, 0.05, 0, 0.1)
    wide = seen(answered(50.0, 10.0, 110.0, certified=True), truth, 0.05, 0, 0.1)
    assert (wrong.state, wrong.wrong, wrong.covered) == ("met", True, False)
    assert (right.state, right.wrong, right.covered, right.certified) == ("met", False, True, True)
    assert (wide.state, wide.wrong, wide.covered) == ("missed", True, True)
    record = record_of([wrong] * 30 + [right] * 10, 0.1, 0.2) | {"refused": ""}
    assert (record["wrong_and_met"], record["sampled"], record["covered"]) == (30, 40, 0.25)
    assert [f.split()[0] for f in faults_of(record, 600)] == ["wrong_and_met", "certified_missed"]
    # An answer that says that it does not know is believed.
    unknown = [narrow] * 40
    assert faults_of(record_of(unknown, 0.1, 0.2) | {"refused": ""}, 600) == []


def test_a_value_called_exact_that_is_not_is_no_exact_one(promise):
    from benchmarks.promise.cells import seen
    from skimql.engine.results.answer import Answer
    from skimql.sketches.intervals.interval import exact

    found = seen(Answer(("v",), ((exact(0),),)), {"[]": 7.0}, 0.05, 0, 0.1)
    assert (found.state, found.covered, found.wrong, found.certified) == ("met", False, True, True)
    assert seen(Answer(("v",), ((exact(7),),)), {"[]": 7.0}, 0.05, 0, 0.1).state == "exact"


def test_bounds_are_those_of_the_binomial_distribution(promise):
    from benchmarks.promise.cells import most

    assert most(300, 0.05, 600) == 33
    assert most(0, 0.05, 600) == 0


def of_one_class(file):
    """The words of a run of one class by one route."""
    words = f"promise --classes orders_items --routes first --errors 0.2 --json {file}"
    return words.split()


def test_cells_that_a_file_has_are_not_run_again(promise, tmp_path, monkeypatch, capsys):
    file = tmp_path / "found.json"
    asked = of_one_class(file)
    monkeypatch.setattr(sys, "argv", [*asked, "--seeds", "4", "--draws", "1", "--rows", str(TUPLES)])
    assert promise.main() == 0
    before = file.read_text()
    assert "answers in" in capsys.readouterr().out
    assert promise.main() == 0
    assert file.read_text() == before
    assert "answers in" not in capsys.readouterr().out


def test_a_run_that_was_stopped_goes_on_where_it_was_and_knows_what_others_ran(
    promise, tmp_path, monkeypatch, capsys
):
    def record(aggregate):
        names = {"class": "orders_items", "kind": "ordinary", "aggregate": aggregate, "error_asked": 0.2}
        return (
            names
            | {"route": "first", "sql": aggregate, "backend": "memory", "refused": ""}
            | record_of([], 1, 1)
        )

    def stopped(chosen, asked, *_, **__):
        ran.append(asked)
        yield record("COUNT")
        if len(ran) == 1:
            raise KeyboardInterrupt
        yield record("SUM")

    from benchmarks.promise.cells import record_of

    ran = []
    file, other = tmp_path / "found.json", tmp_path / "other.json"
    other.write_text(json.dumps([record("AVG")]))
    asked = of_one_class(file)
    monkeypatch.setattr(sys, "argv", [*asked, "--also", str(other)])
    monkeypatch.setattr(promise, "cells", stopped)
    with pytest.raises(KeyboardInterrupt):
        promise.main()
    assert [r["aggregate"] for r in json.loads(file.read_text())] == ["COUNT"]
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--cells"])
    promise.main()
    assert [[a for a, *_ in asked] for asked in ran] == [["COUNT", "SUM", "grouped"], ["SUM", "grouped"]]
    assert len([line for line in capsys.readouterr().out.splitlines() if "exact (0 seeds)" in line]) == 3


def test_ranges_of_seeds_are_one_cell_and_go_on_where_they_ended(promise, draws):
    from benchmarks.promise.cells import pooled
    from benchmarks.promise.memory_run import cells

    asked, chosen = [("COUNT", 0.2, "sample")], promise.CLASSES["orders_items"]
    whole, one, two = (next(cells(chosen, asked, r, TUPLES, 2)) for r in (range(6), range(3), range(3, 6)))
    (both,) = pooled([one, two])
    for name in ("seeds", "sampled", "states", "certified", "covered", "wrong_and_met"):
        assert both[name] == whole[name], name
    assert pooled([whole]) == [whole]
    # No sample is run exactly here, however wide it is.
    assert whole["methods"] == {"key_sample": 6}


def test_a_cell_that_has_been_exact_forty_times_is_not_asked_again(promise):
    def record(route, exact, seeds, first=0, backend="memory"):
        names = {"class": "c", "aggregate": "SUM", "error_asked": 0.05, "route": route, "backend": backend}
        states = {"met": seeds - exact, "missed": 0, "unknown": 0, "exact": exact}
        return names | {"seeds": seeds, "from": first, "states": states, "refused": ""}

    found = [
        record("a", 40, 40),
        record("b", 39, 40),
        record("c", 3, 3),
        record("d", 40, 40, backend="spark"),
    ]
    # Ranges of seeds are added up.
    found += [record("e", 20, 20), record("e", 20, 20, 20), record("f", 20, 20), record("f", 19, 20, 20)]
    assert {route for *_, route in promise.settled(found)} == {"a", "e"}


@pytest.mark.parametrize("name", ["in_order_with_long_runs", "in_order_with_filters_that_exclude"])
def test_files_in_order_foretell_how_wide_a_first_sample_will_be(promise, name):
    """By the keys that are counted, and by how filters go together; 38 times too wide and a third without."""
    from benchmarks.promise.routes import ROUTES, Asked, backend_of

    data = promise.CLASSES[name].data(0, 20_000)
    asked = Asked(backend_of(data.arrow()), data.select("COUNT"), 0.05, ROUTES["sample"], data.max_groups)
    answer = asked.answer(1)
    told, cell = answer.attempts[-1].attempt.predicted.half_width, answer.rows[0][0]
    assert 0.5 < told / (max(cell.high - cell.value, cell.value - cell.low) / cell.value) < 2.0
