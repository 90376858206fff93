"""What Enter does, and colours."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from support.completion_cases import NAMES

from skimql.cli.shell.editor import FullEditor, PlainEditor, coloured, ends
from skimql.cli.shell.names import Names


@pytest.mark.parametrize(
    ("text", "enter", "runs"),
    [
        ("SELECT 1", "complete", True),
        ("SELECT 1", "semicolon", False),
        ("SELECT 1;", "semicolon", True),
        ("SELECT 'a;", "semicolon", False),
        ("SELECT count(*)", "complete", False),
        ("\\d", "semicolon", True),
        ("quit", "semicolon", True),
        ("", "complete", True),
    ],
)
def test_enter_runs_what_is_complete(text, enter, runs):
    assert ends(text, enter) == runs


def kinds(text, names=NAMES):
    return [
        (piece, kind.removeprefix("class:"))
        for line in coloured(text, names)
        for kind, piece in line
        if piece.strip()
    ]


def test_words_have_the_colours_of_their_kind():
    assert kinds("SELECT APPROXIMATE 'a\nb'") == [
        ("SELECT", "keyword"),
        ("APPROXIMATE", "ours"),
        ("'a", "text"),
        ("b'", "text"),
    ]
    assert kinds("SELECT 'open")[-1] == ("'open", "mistake")


def test_an_unknown_table_is_a_mistake_where_all_are_known():
    known = Names(NAMES.tables, complete=True)
    text = "SELECT 1 FROM flihgts f"
    assert ("flihgts", "unknown") in kinds(text, known)
    assert ("flihgts", "") in kinds(text)
    assert ("flig", "") in kinds("SELECT 1 FROM flig", known), "it is still being typed"
    assert ("q", "") in kinds("WITH q AS (SELECT 1) SELECT 1 FROM q x", known)


class Around:
    names, theme, correction = Names(), "none", "SELECT 2"

    def option(self, name):
        return "complete"


def test_a_plain_terminal_reads_lines(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*)\nFROM t\n\nSELECT 'x"))
    editor = PlainEditor(Around())
    assert editor.read() == "SELECT count(*)\nFROM t"
    assert editor.read() == "SELECT 2", "Enter takes the correction"
    assert editor.read() == "SELECT 'x"
    with pytest.raises(EOFError):
        editor.read()
    assert "   ...> " in capsys.readouterr().out


def test_a_style_stays_the_same_until_the_theme_changes():
    # With another one prompt_toolkit reads all rules anew, at every key.
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        around = SimpleNamespace(theme="dark", names=Names(), option=lambda name: "emacs")
        style = FullEditor(around, None)._session.style
        before = style.invalidation_hash()
        assert style.invalidation_hash() == before
        around.theme = "light"
        assert style.invalidation_hash() != before
