"""Formats of results."""

from skimql.cli.formats import FORMATS, format_of_file
from skimql.cli.render import _WRITERS


def test_there_is_a_writer_for_each_format_but_the_table():
    assert ("table", *_WRITERS) == FORMATS


def test_the_ending_of_a_file_tells_its_format():
    assert [format_of_file(f"x.{e}") for e in ("csv", "JSON", "md", "ndjson", "tsv", "x")] == ["csv", "json", "markdown", "jsonl", "tsv", "csv"]  # fmt: skip
