"""Results for people."""

from __future__ import annotations

import pytest

from skimql import Answer, Estimate
from skimql.cli.shell.results import Screen, shown

SCREEN = Screen(80)


def lines(answer, screen=SCREEN):
    return [line.rstrip() for line in shown(answer, screen).splitlines()]


def test_an_interval_is_a_bar_beside_its_value():
    answer = Answer(
        ("g", "n"),
        (
            ("a", Estimate(100.0, 80.0, 120.0, 0.95, True, "theorem")),
            ("b", Estimate(50.0, 40.0, 60.0, 0.95, True, "theorem")),
        ),
    )
    head, _, first, second = lines(answer)
    assert head.split() == ["g", "n"]
    assert first.endswith("├─●─┤ 100 ± 20")
    assert "├●┤" in second
    assert "├" not in "".join(lines(answer, Screen(14))), "where there is no room there is no bar"


def test_what_is_not_certified_is_marked_and_what_is_exact_says_so():
    answer = Answer(
        ("a", "b"),
        (
            (
                Estimate(100.0, 80.0, 120.0, 0.95, False, "theorem"),
                Estimate(7, 7, 7, 1.0, True, "exact"),
            ),
        ),
    )
    assert "100 ± 20 ?" in lines(answer)[2]
    assert "7 exact" in lines(answer)[2]


def test_null_is_not_the_text_null():
    assert lines(Answer(("a", "b"), ((None, "NULL"),), exact=True))[2].split() == ["NULL", "'NULL'"]


def test_large_numbers_are_told_in_words_below():
    answer = Answer(("n",), ((Estimate(2_970_896_868.0, 2.9e9, 3.0e9, 0.95, True, "theorem"),),))
    assert "2.97 billion" in lines(answer)[3]


def test_wide_results_go_down_the_page_unless_told_otherwise():
    answer = Answer(tuple(f"column_{i}" for i in range(12)), (tuple("x" * 9 for _ in range(12)),), exact=True)
    assert lines(answer)[0].startswith("── row 1")
    assert lines(answer)[1] == "column_0   xxxxxxxxx"
    assert "column_11" in lines(answer, Screen(80, expanded="off"))[0]
    assert lines(Answer(("a",), ((1,),), exact=True), Screen(80, expanded="on"))[1] == "a  1"


def test_east_asian_text_takes_two_columns():
    head, _, first, second = lines(Answer(("城市", "n"), (("東京", 1), ("ab", 2)), exact=True))
    assert first == "東京   1"
    assert second == "ab     2"
    assert head == "城市   n"


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[31mb", "a\rb"])
def test_a_text_moves_no_cursor(text):
    written = shown(Answer(("a",), ((text,),), exact=True), SCREEN)
    assert "\x1b" not in written
    assert len(written.splitlines()) == 3


def test_without_unicode_all_is_ascii():
    answer = Answer(("n", "m"), ((Estimate(100.0, 80.0, 120.0, 0.95, True, "theorem"), 1),))
    assert shown(answer, Screen(80, unicode=False)).isascii()
    assert shown(answer, Screen(80, unicode=False, expanded="on")).isascii()


def test_many_rows_are_cut_and_the_cut_is_said(monkeypatch):
    monkeypatch.setattr("skimql.cli.shell.results.MOST_ROWS", 10)
    told = lines(Answer(("n",), tuple((i,) for i in range(2000)), exact=True))
    assert len(told) == 13
    assert told[-1] == "... the first 10 of 2,000 rows; \\copy FILE writes all"
