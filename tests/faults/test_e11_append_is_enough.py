"""Where files have only been added, the note names APPEND, which reads no more than them; typed, it is right."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq


def test_the_statement_in_the_note_brings_the_sketch_up_to_date(session, tmp_path):
    pq.write_table(pa.table({"k": [1, 2]}), tmp_path / "a.parquet")
    session.table("t", tmp_path)
    session.sql("CREATE SKETCH s ON t (k)")
    pq.write_table(pa.table({"k": [2, 3, 4]}), tmp_path / "b's.parquet")
    joined = "SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k"
    answer = session.sql(joined)
    assert not any(c.certified for c in answer.rows[0])
    (note,) = (n for n in answer.notes if "since then" in n)
    typed = re.search(r"(APPEND SKETCH s FROM '.*'), or REFRESH SKETCH s", note)
    session.sql(typed.group(1))
    answer = session.sql(joined)
    assert answer.value == 7
    assert all(c.certified for c in answer.rows[0])
