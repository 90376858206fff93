"""Names that are mistakes."""

from __future__ import annotations

import pytest
from support.completion_cases import NAMES

from skimql import tokens
from skimql.cli.shell.mistakes import unknown_names
from skimql.cli.shell.names import Names

ALL = Names(NAMES.tables, complete=True)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SELECT f.carrier FROM flights f", []),
        ("SELECT f.carier FROM flights f", ["carier"]),
        ("SELECT flights.carier FROM flights WHERE flights.`dest` = 1", ["carier"]),
        ("SELECT f.x FROM flihgts f", ["flihgts"]),
        ("WITH q AS (SELECT 1 AS x) SELECT q.x FROM q", []),
        ("SELECT q.x FROM (SELECT 1 AS x) q JOIN flights f ON f.y = q.x", ["y"]),
        ("SELECT a.seats FROM flights a WHERE EXISTS (SELECT 1 FROM planes a WHERE a.seats = 1)", []),
        ("SELECT f.time.x FROM flights f", []),
        ("SELECT x FROM db.t", []),
        ("INSERT INTO t SELECT 1", []),
    ],
)
def test_tables_and_columns_that_there_are_not(text, wrong):
    found = tokens(text)
    assert [found[n].text for n in sorted(unknown_names(found, ALL))] == wrong


def test_another_table_is_none_where_not_all_are_known():
    assert unknown_names(tokens("SELECT 1 FROM flihgts"), NAMES) == set()
