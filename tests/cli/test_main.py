"""The entry point: command lines that need no parser of arguments."""

import pytest

from skimql.cli.main import plain_request


def test_a_plain_command_line_with_a_catalog_is_read_without_typer(tmp_path):
    request = plain_request(
        ["--catalog", str(tmp_path), "-q", "-o", "json", "-c", "SELECT APPROXIMATE COUNT(*) FROM x"]
    )
    assert request is not None
    assert (request.catalog, request.output, request.quiet) == (str(tmp_path), "json", True)
    assert request.texts == ("SELECT APPROXIMATE COUNT(*) FROM x",)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-c", "SELECT 1"],
        ["--catalog"],
        ["--catalog", "x", "--nosuch"],
        ["--catalog", "x", "-o", "xml", "-c", "SELECT 1"],
        ["doctor"],
    ],
)
def test_any_other_goes_to_typer(arguments):
    assert plain_request(arguments) is None
