"""CSV with line breaks within quotes: told before Spark cuts its rows, with the option that reads it."""

from __future__ import annotations

import gzip

import pytest

from skimql import DataError
from skimql.engine.sources.paths import _refuse_split_rows

ROWS = 'id,text\n1,"two\nlines"\n2,one\n'


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("options", [{}, {"quote": "'"}, {"sep": ";"}])
def test_line_breaks_within_quotes_are_refused(tmp_path, ending, options):
    text = ROWS.replace('"', options.get("quote", '"')).replace(",", options.get("sep", ","))
    file = tmp_path / f"t{ending}"
    file.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    for path in (file, tmp_path):
        with pytest.raises(DataError, match=r"line 2 of .* line break within quotes") as caught:
            _refuse_split_rows("t", str(path), options)
        assert "multiLine=True" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        'id,text\n1,5" pipe\n2,"a"\n',  # a quote within a field is text
        'id,text\n1,"never closed\n2,b\n3,c\n',
        'id,text\r\n1,"a ""b"" c"\r\n',
        'id,text\n1,"a \\" b"\n2,c\n',
        "",
    ],
)
def test_other_quotes_are_left_to_spark(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, newline="")
    _refuse_split_rows("t", str(tmp_path / "t.csv"), {})


def test_what_the_error_says_gives_the_rows(session, tmp_path):
    (tmp_path / "t.csv").write_text(ROWS)
    with pytest.raises(DataError, match="line break"):
        session.table("t", tmp_path / "t.csv")
    session.table("t", tmp_path / "t.csv", multiLine=True)
    assert session.sql("SELECT APPROXIMATE COUNT(*) FROM t").value == 2
