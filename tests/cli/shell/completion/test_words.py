"""Names as they must be typed."""

from skimql.cli.shell.completion.words import match, quoted


def test_how_well_words_go_together():
    assert [match("dep", w) for w in ("dep_delay", "arr_dep", "xdep", "daeap", "x")] == [0, 1, 2, 3, None]


def test_names_are_quoted_where_they_must():
    assert [quoted(n) for n in ("a", "order id", "1a", "from", "größe", "a`b")] == [
        "a", "`order id`", "`1a`", "`from`", "`größe`", "`a``b`",
    ]  # fmt: skip
