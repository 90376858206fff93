"""The arguments of the command: order, exit codes, help."""

import pytest
from typer.testing import CliRunner

from skimql import __version__
from skimql.cli import app as module


def test_version_and_help_start_nothing():
    runner = CliRunner()
    assert __version__ in runner.invoke(module.app, ["--version"]).stdout
    told = runner.invoke(module.app, ["--help"])
    assert told.exit_code == 0
    assert "--catalog" in told.stdout


@pytest.mark.parametrize(
    "arguments", [["--nosuch"], ["-o", "xml", "-c", "SELECT 1"], ["-s", "seed", "-c", "SELECT 1"]]
)
def test_wrong_usage_has_its_own_code(arguments):
    assert CliRunner().invoke(module.app, arguments).exit_code == module.USAGE


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["--output-file", "x.json"], "json"),
        (["--output-file", "x.md"], "markdown"),
        (["--output-file", "x.json", "-o", "tsv"], "tsv"),
        ([], "csv"),
    ],
)
def test_a_file_of_results_tells_its_format(arguments, output, monkeypatch):
    seen = []
    monkeypatch.setattr("skimql.cli.run.run_texts", lambda request: seen.append(request) or 0)
    module.app(
        [*arguments, "-c", "SELECT 1", "--master", "local[2]", "--conf", "a=b", "--timing"],
        standalone_mode=False,
    )
    assert seen[0].output == output
    assert seen[0].conf == {"a": "b", "spark.master": "local[2]"}
    assert seen[0].timing


def test_config_tells_every_setting_and_its_origin(tmp_path):
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "SKIMQL_THEME": "dark"}
    told = CliRunner().invoke(module.app, ["-s", "error=1%", "config"], env=environment).stdout
    lines = {line.split()[0]: line for line in told.splitlines() if line}
    assert "1%" in lines["error"]
    assert "the command line" in lines["error"]
    assert "SKIMQL_THEME" in lines["theme"]
    assert "built in" in lines["seed"]
    written = CliRunner().invoke(module.app, ["config", "--init"], env=environment)
    assert (tmp_path / "skimql" / "config.toml").exists()
    assert written.exit_code == 0
    wrong = CliRunner().invoke(module.app, ["config"], env={**environment, "SKIMQL_THEME": "drak"})
    assert wrong.exit_code == 1
