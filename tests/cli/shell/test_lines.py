"""Lines of talk."""

from skimql.cli.shell.lines import broken, in_colour


def test_long_lines_break_between_words_and_layouts_stay():
    assert broken("aaa bbb ccc", 8) == "aaa bbb\n  ccc"
    assert broken("  aaa bbb ccc", 8) == "  aaa bbb ccc"
    assert broken("x" * 20, 8) == "x" * 20


def test_a_style_without_a_colour_is_none():
    assert in_colour("text", "") == "text"
