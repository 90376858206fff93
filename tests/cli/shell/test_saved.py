"""Saved queries."""

from skimql.cli.shell.saved import keep, kept_queries


def test_queries_are_kept_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert kept_queries() == {}
    keep("a", "SELECT 1")
    keep("b", "SELECT '$1'\nFROM t")
    keep("a", "SELECT 2")
    assert kept_queries() == {"a": "SELECT 2", "b": "SELECT '$1'\nFROM t"}
    (tmp_path / "skimql" / "queries.json").write_text("[")
    assert kept_queries() == {}
