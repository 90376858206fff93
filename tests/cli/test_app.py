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
