"""A terminal or pipe that is not UTF-8 gets plain signs, never a UnicodeEncodeError."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from support.kept import kept, remember

from skimql import Answer, Estimate
from skimql.cli.formats import FORMATS
from skimql.cli.render import render
from skimql.cli.streams import encodes
from skimql.engine.catalog.catalog import Catalog

ANSWER = Answer(("größe", "n"), (("größte 漢字 ±", Estimate(1000.0, 900.0, 1100.0, 0.95, True, "theorem")),))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("output", FORMATS)
def test_every_format_in_every_encoding(encoding, output):
    from skimql.cli import streams

    streams.codecs.register_error("skimql", streams._replaced)
    raw = io.BytesIO()
    sink = io.TextIOWrapper(raw, encoding=encoding, errors="skimql")
    render(ANSWER, output, sink)
    sink.flush()
    text = raw.getvalue().decode(encoding)
    assert ("+/- 100" in text) == (output == "table" and encoding == "ascii")
    if output.startswith("json"):
        record = json.loads(text)
        record = record[0] if isinstance(record, list) else record
        assert record["größe"] == "größte 漢字 ±"


def test_signs_are_replaced_and_what_fits_is_not():
    class Sink:
        encoding = "ascii"

    assert encodes(Sink, "─ 3 ± 4 …") == "- 3 +/- 4 ..."
    Sink.encoding = "latin-1"
    assert encodes(Sink, "─ 3 ± é") == "- 3 ± é"


@pytest.mark.parametrize(
    ("environment", "output"),
    [
        ({"PYTHONIOENCODING": "ascii"}, "csv"),
        ({"PYTHONIOENCODING": "latin-1:strict"}, "markdown"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "table"),
    ],
)
def test_the_command_in_a_plain_locale(environment, output, tmp_path):
    sizes = {"buckets": 64, "sparse": False}
    remember(Catalog(tmp_path), kept("größe", "t", {"k": range(500)}, **sizes))
    query = "SELECT APPROXIMATE COUNT(*) AS `größe` FROM t a JOIN t b ON a.k = b.k"
    code = "from skimql.cli.main import run; run()"
    command = [
        sys.executable,
        "-c",
        code,
        "--catalog",
        str(tmp_path),
        "-o",
        output,
        "-c",
        query,
        "-c",
        "SHOW SKETCHES",
    ]
    done = subprocess.run(command, capture_output=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    assert b"Error" not in done.stderr
