"""What the user's own shell completes."""

from __future__ import annotations

from typer.testing import CliRunner

from skimql.cli.app import app
from skimql.cli.completers import files, formats, plan_formats, settings_of_queries


def test_formats_settings_values_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flights.parquet").touch()
    assert formats("j") == ["json", "jsonl"]
    assert plan_formats("s") == ["svg"]
    assert settings_of_queries("er") == ["error="]
    assert settings_of_queries("route=j") == ["route=jvm"]
    assert files("fl") == ["flights.parquet"]
    assert files("f=fl") == ["f=flights.parquet"]


def test_subcommands_options_and_files_as_bash_asks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plots").mkdir()

    def found(*words):
        asked = {
            "_SKIMQL_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        return CliRunner().invoke(app, prog_name="skimql", env=asked).stdout.split()

    assert found("skimql", "plo") == ["plot", "plots/"]
    assert "--output-file" in found("skimql", "--out")
    assert found("skimql", "-t", "pl") == ["plots/"]
