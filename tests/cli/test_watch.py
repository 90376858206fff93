"""Watching a view."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest
from support.continuous import MemorySpark, declared, stream_of
from support.memory import arrow
from typer.testing import CliRunner

from skimql.cli.app import app
from skimql.cli.watch import Watched, band, sparkline
from skimql.engine.catalog.catalog import Catalog


@pytest.fixture
def folder(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("s", "k BIGINT, v BIGINT")],
        {"q": "SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS total FROM s"},
    )
    MemorySpark(catalog, "s", tmp_path / "checkpoint").run([arrow("k BIGINT, v BIGINT", [(1, 5), (2, 1000)])])
    return str(tmp_path / "c")


def test_a_view_is_one_line_a_look_where_nobody_sees_a_screen(folder):
    told = CliRunner().invoke(app, ["watch", "q", "--catalog", folder, "--times", "2", "--every", "0.05"])
    assert told.exit_code == 0
    lines = told.stdout.splitlines()
    assert len(lines) == 2
    assert all("n 2 [2, 2]  total 1,005 [1,005, 1,005]  0 events/s" in line for line in lines)


def test_what_cannot_be_watched_is_said(folder):
    told = CliRunner().invoke(app, ["watch", "other", "--catalog", folder, "--times", "1"])
    assert told.exit_code == 1
    assert CliRunner().invoke(app, ["watch", "q"]).exit_code == 2


def test_a_line_of_bars_goes_from_the_least_to_the_largest():
    assert sparkline(deque([1.0, 8.0, 4.5])) == "▁█▅"
    assert sparkline(deque([3.0])) == "▁"


@pytest.mark.parametrize(("value", "at"), [(0.0, 0), (10.0, 23), (5.0, 12), (-1.0, 0)])
def test_a_band_shows_where_in_its_interval_a_value_lies(value, at):
    assert band(value, 0.0, 10.0).index("●") == at + 1
    assert band(value, None, 1.0) == band(value, 2.0, 2.0) == ""


def test_the_rate_is_that_of_what_is_kept():
    seen = Watched()
    for at in range(3):
        seen.add({"n": None, "n_low": None, "n_high": None}, 100 * at, 2.0 * at)
    assert seen.rate == 50.0
    assert replace(seen, events=deque([(1.0, 5)])).rate == 0.0
