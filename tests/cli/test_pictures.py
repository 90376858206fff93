"""Pictures of a query: points of the curve, the chart of a terminal, figures in files."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from skimql import Answer, Estimate, SkimqlError
from skimql.cli.pictures import SIZES, Point, chart, curve, draw, intervals

POINTS = [
    Point("4 KB", 4096, 0.4, "hash"),
    Point("16 KB", 16384, math.nan, "SKIMQL_SPACE"),
    Point("64 KB", 65536, 0.1, "hash"),
    Point("1 MB", 1 << 20, 0.0, "exact"),
    Point("40 KB", 40960, 0.15, "two_level", chosen=True),
]


class Session:
    """Plans half as wide for four times the bytes; 16 KB are refused."""

    def plan(self, text):
        size = text.partition(" SIZE ")[2]
        if size == "16 KB":
            raise SkimqlError("too little", "SKIMQL_SPACE")
        width = 0.05 if not size else 1 / (1 + SIZES.index(size))
        return SimpleNamespace(
            method="hash", attempt=SimpleNamespace(predicted=SimpleNamespace(half_width=width, nbytes=2048.0))
        )


def test_a_curve_has_every_size_without_the_clauses_of_the_query_and_the_query_last():
    asked = []
    session = Session()
    found = curve(
        SimpleNamespace(plan=lambda text: (asked.append(text), session.plan(text))[1]),
        "SELECT APPROXIMATE COUNT(*) FROM a ERROR WITHIN 2%",
    )
    assert [p.told for p in found[:-1]] == list(SIZES)
    assert asked[1] == f"SELECT APPROXIMATE COUNT(*) FROM a SIZE {SIZES[0]}"
    assert (found[1].method, math.isnan(found[1].half_width)) == ("SKIMQL_SPACE", True)
    assert found[-1] == Point("2 KB", 2048.0, 0.05, "hash", chosen=True)


@pytest.mark.parametrize("columns", [10, 40, 80, 200])
def test_bars_are_longer_the_wider_the_interval_and_fit(columns):
    lines = chart(POINTS, columns).splitlines()
    bars = [line.count("█") for line in lines]
    assert bars[0] > bars[4] > bars[2] > bars[1] == bars[3] == 0
    assert max(map(len, lines)) <= max(columns, 50)
    assert [line[0] for line in lines] == [" ", " ", " ", " ", "▸"]
    assert "unknown" in lines[1]
    assert "exact" in lines[3]


def test_a_chart_of_nothing_known_and_of_a_terminal_without_signs():
    assert (
        chart([Point("4 KB", 4096, math.nan, "x", chosen=True)], 80, unicode=False) == "> 4 KB  unknown  x\n"
    )
    assert (
        chart(POINTS, 80, unicode=False).isascii() is False
    )  # the sign of the interval is the stream's matter
    assert "█" not in chart(POINTS, 80, unicode=False)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_figures_are_written(tmp_path, ending):
    answer = Answer(
        ("g", "n"),
        (("x", Estimate(10.0, 8.0, 13.0, 0.95, True, "theorem")),),
        aggregated=(False, True),
    )
    file = tmp_path / f"a.{ending}"
    draw(POINTS, answer, str(file))
    assert file.stat().st_size > 1000


def test_other_files_are_refused(tmp_path):
    with pytest.raises(SkimqlError, match="no picture") as fault:
        draw(POINTS, None, str(tmp_path / "a.txt"))
    assert fault.value.code == "SKIMQL_BAD_SETTING"
    with pytest.raises(SkimqlError, match="cannot write"):
        draw(POINTS, None, str(tmp_path / "no" / "a.svg"))


@pytest.mark.parametrize("unicode", [True, False])
def test_intervals_of_groups_are_on_one_scale(unicode):
    cells = [Estimate(v, v - w, v + w, 0.95, True, "theorem") for v, w in ((100.0, 20.0), (50.0, 5.0))]
    answer = Answer(("g", "n"), (("a", cells[0]), ("b" * 90, cells[1])))
    head, first, second = intervals(answer, 60, unicode=unicode).splitlines()
    assert head == "n, from 0 to 120"
    dot = "●" if unicode else "o"
    assert first.index(dot) > second.index(dot)
    assert max(map(len, (first, second))) <= 60
    assert intervals(Answer(("n",), ((1,),), exact=True), 60) == ""
