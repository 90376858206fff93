"""`skimql jar` prints the path, or says what to install."""

from __future__ import annotations

from skimql.cli import jar as command
from skimql.engine.extension.jar import NotBuilt


def test_the_path_is_printed(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "find", lambda: tmp_path / "x.jar")
    assert command.print_jar(False) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'x.jar'}\n"


def test_without_one_it_says_what_is_missing_and_builds_when_told(monkeypatch, capsys, tmp_path):
    def fails(_):
        raise NotBuilt("there is no Java compiler")

    monkeypatch.setattr(command, "find", lambda: None)
    monkeypatch.setattr(command, "own_place", lambda: tmp_path / "x.jar")
    monkeypatch.setattr(command, "build", fails)
    assert [command.print_jar(b) for b in (False, True)] == [1, 1]
    assert capsys.readouterr().err.count("openjdk-17-jdk-headless") == 2
    monkeypatch.setattr(command, "build", lambda path: path)
    assert command.print_jar(True) == 0
