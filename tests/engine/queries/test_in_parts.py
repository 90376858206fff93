"""Rows of any number, a part at a time."""

import csv
import datetime
import io
import json
import tracemalloc

import pytest

from skimql import DataError
from skimql.cli.render import render
from skimql.engine.queries.in_parts import each_part

pytestmark = pytest.mark.spark


def parts_of(frame):
    found = []
    each_part(frame, lambda names, columns: found.append((tuple(names), [list(c) for c in columns])))
    return found


def rows_of(parts):
    return [row for _, columns in parts for row in zip(*columns, strict=True)]


class Counted(io.StringIO):
    """What is written is counted and forgotten."""

    encoding = "utf-8"
    written = 0

    def write(self, text):
        self.written += len(text)
        return len(text)


def test_rows_come_in_order_and_in_parts_each_with_all_names(spark):
    frame = spark.sql(
        "SELECT id, id AS ID, TIMESTAMP'2024-05-01 10:00:00' AS t FROM range(25000) ORDER BY id DESC"
    )
    parts = parts_of(frame)
    assert len(parts) > 1
    assert {names for names, _ in parts} == {("id", "ID_2", "t")}
    rows = rows_of(parts)
    assert [row[0] for row in rows] == list(range(24_999, -1, -1))
    assert {row[2].replace(tzinfo=None) for row in rows} == {datetime.datetime(2024, 5, 1, 10)}


@pytest.mark.parametrize(
    "text", ["SELECT id FROM range(0, 10, 1, 2) WHERE id > 20", "SELECT 1 AS id WHERE false"]
)
def test_no_rows_have_their_names(spark, text):
    assert parts_of(spark.sql(text)) == [(("id",), [[]])]


def test_a_result_that_breaks_off_says_how_far_it_came(spark):
    with pytest.raises(DataError, match=r"broke off after [1-9]") as caught:
        parts_of(spark.sql("SELECT IF(id < 30000, id, raise_error('bad')) FROM range(0, 40000, 1, 4)"))
    assert caught.value.code == "SKIMQL_EXACT_FAILED"


def test_formats_are_whole_over_parts_and_memory_does_not_grow_with_them(spark):
    def read(output, text="SELECT id, id % 3 = 0 AS whole, 'a,%' AS p FROM range(0, 21000, 1, 2)"):
        sink = io.StringIO()
        render(spark.sql(text), output, sink)
        return sink.getvalue()

    rows = [{"id": n, "whole": n % 3 == 0, "p": "a,%"} for n in range(21_000)]
    assert json.loads(read("json")) == rows
    assert [json.loads(line) for line in read("jsonl").splitlines()] == rows
    listed = list(csv.DictReader(io.StringIO(read("csv"))))
    assert [(r["id"], r["whole"], r["p"]) for r in listed[2:4]] == [
        ("2", "false", "a,%"),
        ("3", "true", "a,%"),
    ]
    assert json.loads(read("json", "SELECT id FROM range(10) WHERE id > 20")) == []

    sink = Counted()
    tracemalloc.start()
    try:
        render(spark.sql("SELECT id, repeat('x', 90) AS x FROM range(0, 200000, 1, 8)"), "csv", sink)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A partition of 25,000 rows may be there, and the next; not all of the 20 MB.
    assert sink.written > 19_000_000
    assert most < 12_000_000
