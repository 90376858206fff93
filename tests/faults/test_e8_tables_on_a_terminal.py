"""Tables on a terminal: SHOW SKETCHES fits 80 columns, and no cell is folded: what is wider goes down the page."""

from __future__ import annotations

import io

import pytest
from support.kept import kept, remember

from skimql import Answer, Session
from skimql.cli.render import render
from skimql.engine.catalog.catalog import Catalog


class Terminal(io.StringIO):
    """A terminal of a width that COLUMNS says."""

    encoding = "utf-8"

    def isatty(self):
        return True


def shown(answer, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    sink = Terminal()
    render(answer, "table", sink)
    return sink.getvalue()


@pytest.fixture
def session():
    catalog = remember(
        Catalog(), kept("sketch_of_orders", "orders", {"id": range(5000)}, buckets=512, sparse=False)
    )
    return Session(catalog=catalog)


def test_show_sketches_has_five_columns_on_a_terminal_and_all_in_data(session, monkeypatch):
    answer = session.sql("SHOW SKETCHES")
    lines = shown(answer, monkeypatch, 80).splitlines()
    assert lines[0].split() == ["sketch", "table", "keys", "bytes", "updated"]
    assert "45056" in lines[2]
    assert max(map(len, lines)) <= 80
    assert len(answer.names) == len(answer.records()[0]) == 13
    assert "45056" in shown(answer, monkeypatch, 40)


@pytest.mark.parametrize("columns", [20, 80, 160])
def test_no_cell_is_folded(columns, monkeypatch):
    answer = Answer(tuple(f"column_{i}" for i in range(9)), ((1234567890123456789,) * 9,), exact=True)
    text = shown(answer, monkeypatch, columns)
    assert text.count("1234567890123456789") == 9
    assert text.startswith("-- row 1")


def test_a_plan_keeps_its_lines_in_a_notebook(session):
    plan = session.sql("EXPLAIN SELECT APPROXIMATE COUNT(*) FROM orders a JOIN orders b ON a.id = b.id")
    assert plan._repr_html_().startswith("<pre>join graph")
    assert "<td>" not in plan._repr_html_()
    # From kept sketches nothing is scanned, and nothing says so.
    assert "no scan, from the kept sketches sketch_of_orders; 1 synopsis" in plan.value
    assert "scans" not in plan.value


def test_what_would_tell_is_said(session):
    wide = kept("s_lines", "lines", {"id": range(4800, 9800)}, buckets=64, sparse=False)
    other = kept("s_orders", "orders", {"id": range(5000)}, buckets=64, sparse=False)
    catalog = remember(Catalog(), wide, other)
    join = "SELECT APPROXIMATE COUNT(*) FROM orders o JOIN lines l ON o.id = l.id"
    # What is kept answers whatever the session aims at: what tells is a statement that asks, and leaves the rest to us.
    for error in (None, 0.05):
        asked = Session(catalog=catalog, error=error).sql(join)
        assert "the interval is wider than the value: ERROR WITHIN 5% would tell" in asked.notes
    asked = Session(catalog=catalog).sql(f"{join} ERROR WITHIN 5% BEHAVIOR 'do_nothing'")
    assert "the interval is wider than the value: ERROR WITHIN without BEHAVIOR would tell" in asked.notes
