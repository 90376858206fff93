"""The user's folders."""

from __future__ import annotations

from pathlib import Path

from skimql.cli.folders import config_folder, is_configured, state_folder


def test_xdg_variables_are_followed_where_they_are_absolute(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_folder() == tmp_path / "skimql"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_folder() == Path(tmp_path / "home/.local/state/skimql")


def test_the_quick_way_is_for_who_has_configured_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in [n for n in __import__("os").environ if n.startswith("SKIMQL_")]:
        monkeypatch.delenv(name)
    assert not is_configured()
    (tmp_path / ".skimql.toml").touch()
    assert is_configured()
    (tmp_path / ".skimql.toml").unlink()
    monkeypatch.setenv("SKIMQL_DEBUG", "1")
    assert not is_configured()
    monkeypatch.setenv("SKIMQL_ERROR", "1%")
    assert is_configured()
