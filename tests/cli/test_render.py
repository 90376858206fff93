"""Results as text for whatever reads them."""

import csv
import io
import json

import pytest

from skimql import Estimate
from skimql.cli.formats import FORMATS, default_format
from skimql.cli.render import foot_line, render
from skimql.engine.results.answer import Answer

CELL = Estimate(10.0, 8.0, 13.0, 0.95, True, "theorem")
ANSWER = Answer(("g", "n"), (('a,"b"\n', CELL), (None, CELL)), aggregated=(False, True))


def written(output, answer=ANSWER):
    sink = io.StringIO()
    render(answer, output, sink)
    return sink.getvalue()


@pytest.mark.parametrize("output", FORMATS)
def test_every_format_writes_every_row(output):
    assert written(output).count("10") >= 2


def test_machines_read_back_what_was_written():
    rows = json.loads(written("json"))
    assert [(r["g"], r["n"], r["n_low"]) for r in rows] == [('a,"b"\n', 10, 8), (None, 10, 8)]
    assert [json.loads(line) for line in written("jsonl").splitlines()] == rows
    assert next(csv.DictReader(io.StringIO(written("csv"))))["g"] == 'a,"b"\n'


def test_a_pipe_gets_csv_and_an_exact_answer_no_foot():
    assert default_format(io.StringIO()) == "csv"
    assert isinstance(foot_line(ANSWER), str)
