"""A plan as text."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.choose import choose
from skimql.optimizer.describe.plan import count, describe


@pytest.mark.parametrize(("number", "text"), [(1, "1 synopsis"), (2, "2 synopses"), (1000, "1,000 synopses")])
def test_numbers_take_their_plural(number, text):
    assert count(number, "synopsis", "synopses") == text


def test_every_scan_and_synopsis_has_a_line():
    plan = choose(query("SUM(n) FROM x JOIN y ON x.id = y.id WHERE y.m > 3", XYZ), 7, 11, 4096)
    lines = describe(plan).split("\n")
    assert lines[0].startswith("plan: 2 scans; ")
    assert lines[0].endswith("seed 7")
    assert sum(line.startswith("  scan ") for line in lines) == 2
    assert any("hash 11 x 4,096 of `n`" in line for line in lines)
    assert any("where `m` > 3" in line for line in lines)
    assert describe(plan, ["s", "t"]).startswith("plan: no scan, from the kept sketches s, t")
