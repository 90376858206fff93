"""Files in FROM."""

from __future__ import annotations

import pytest

from skimql.parser.file_tables import with_file_tables


@pytest.mark.parametrize(
    ("text", "meant", "files"),
    [
        ("SELECT 1 FROM 'a.csv' x JOIN 'b/c.parquet' y ON x.k = y.k", "SELECT 1 FROM `a.csv` x JOIN `b/c.parquet` y ON x.k = y.k", ("a.csv", "b/c.parquet")),
        ('EXACT SELECT 1 FROM "a.csv"', None, ()),
        ("SELECT * FROM (SELECT k FROM 'a.csv') q", "SELECT * FROM (SELECT k FROM `a.csv`) q", ("a.csv",)),
        ("SELECT trim(BOTH 'x' FROM 'a.csv')", None, ()),
        ("SELECT extract(YEAR FROM 'a.csv')", None, ()),
        ("SELECT 'a.csv' FROM t WHERE x = 'a.csv'", None, ()),
        ("SELECT 1 FROM 'no such'", None, ()),
        ("IMPORT SKETCH s FROM 'a.csv'", None, ()),
        ("APPEND SKETCH s FROM 'a.csv'", None, ()),
        ("SELECT 1 FROM 'it''s.csv'", None, ()),
        ("SELECT 1 -- FROM 'a.csv'", None, ()),
    ],
)  # fmt: skip
def test_only_texts_where_tables_stand_are_files(text, meant, files):
    assert with_file_tables(text, lambda p: "." in p) == (meant or text, files)
