"""What the shell writes."""

from __future__ import annotations

import pytest

from skimql import Answer, SkimqlError
from skimql.cli.config import load
from skimql.cli.shell import display as module
from skimql.cli.shell.display import Display, with_head


@pytest.fixture
def display(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return Display(load())


ANSWER = Answer(("a", "b"), ((1, "x"), (2, None)), exact=True)


def test_results_go_to_the_terminal_or_a_file(display, tmp_path, capsys):
    display.show(ANSWER)
    assert capsys.readouterr().out.splitlines()[0].split() == ["a", "b"]
    display.redirect("out.json")
    display.show(ANSWER)
    display.redirect(None)
    assert (tmp_path / "out.json").read_text() == '[{"a": 1, "b": "x"},\n {"a": 2, "b": null}]\n'
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "first"), [("o.csv", b"a,b"), ("o.md", b"| a | b |"), ("o.parquet", b"PAR1")]
)
def test_the_last_result_is_written_as_the_ending_says(display, tmp_path, name, first):
    with pytest.raises(SkimqlError, match="no result yet"):
        display.copy(name)
    display.last_answer = ANSWER
    display.copy(name)
    assert (tmp_path / name).read_bytes().startswith(first)


def test_a_file_that_cannot_be_written_is_told(display):
    with pytest.raises(SkimqlError, match="cannot write"):
        display.redirect("/no/such/folder/x.csv")
    with pytest.raises(SkimqlError, match="cannot write"):
        display.redirect("x\x00y")


def test_the_head_of_a_table_is_at_the_top_of_each_screen(monkeypatch):
    text = "head\n----\n" + "".join(f"{i}\n" for i in range(5))
    assert with_head("more", text, 2, 4) == ("more", "head\n----\n0\n1\nhead\n----\n2\n3\nhead\n----\n4\n")
    assert with_head("cat", text, 2, 4) == ("cat", text)
    for version, found in ((590, "less -R"), (643, "less -R --header=2")):
        monkeypatch.setattr(module, "_version_of_less", lambda command, v=version: v)
        assert with_head("less -R", text, 2, 4)[0] == found
