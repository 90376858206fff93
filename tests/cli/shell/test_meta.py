"""Commands with a backslash."""

from __future__ import annotations

import pytest
from support.completion_cases import NAMES

from skimql import SkimqlError
from skimql.cli.shell import meta


class Said:
    last = None
    statement = execute = None

    def __init__(self):
        self.text = ""

    def page(self, text):
        self.text += text


def test_an_unknown_command_names_the_nearest():
    with pytest.raises(SkimqlError) as fault:
        meta.run(Said(), "\\skteches")
    assert (fault.value.code, fault.value.hint) == ("SKIMQL_UNKNOWN_COMMAND", "\\sketches")


@pytest.mark.parametrize("command", ["explain", "plan", "exact", "compare", "tighten", "size", "watch"])
def test_what_is_about_the_last_query_needs_one(command):
    with pytest.raises(SkimqlError, match="there is no query yet"):
        meta.run(Said(), f"\\{command}")


@pytest.mark.parametrize(
    "line", ["\\", "\\ ", "\\x\x00", "\\i", "\\i /no/such/file", "\\copy", "\\t a", "\\d" * 400]
)
def test_odd_commands_are_told_in_words(line):
    with pytest.raises((SkimqlError, AttributeError)) as fault:
        meta.run(Said(), line)
    assert isinstance(fault.value, SkimqlError)


def test_help_has_every_command_in_eighty_columns():
    said = Said()
    meta.run(said, "\\?")
    lines = said.text.splitlines()
    assert all(any(line.startswith(f"\\{name} ") for line in lines) for name in meta.COMMANDS)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\\ske", "\\sketches"),
        ("\\d fl", "flights"),
        ("\\set the", "theme"),
        ("\\theme da", "dark"),
        ("\\timing o", "on"),
        ("\\n la", "late"),
        ("\\i fi", "file.sql"),
    ],
)
def test_commands_and_what_they_take_are_completed(text, found):
    assert found in [c for c, _, _ in meta.complete(text, NAMES, lambda b: ["file.sql"])]


def test_paths_with_blanks_are_completed():
    asked = []
    assert meta.complete("\\i my fi", NAMES, lambda b: (asked.append(b), ["my file.sql"])[1]) == [
        ("my file.sql", 3, "")
    ]
    meta.complete("\\t a= my fi", NAMES, lambda b: (asked.append(b), [])[1])
    assert asked == ["my fi", "my fi"]


def test_values_stand_for_their_numbers_and_too_few_are_told():
    assert (
        meta.with_values("q", "SELECT $1, $2, $10 $0", ["$2", "b", *"cdefghi", "j"]) == "SELECT $2, b, j $0"
    )
    with pytest.raises(SkimqlError, match=r"q takes \$1 \$2, and has 1 of them"):
        meta.with_values("q", "SELECT $2", ["a"])


@pytest.mark.parametrize("command", ["\\?", "\\help", "\\H"])
def test_names_of_other_shells_and_capitals_are_known(command):
    said = Said()
    meta.run(said, command)
    assert "\\sketches" in said.text
