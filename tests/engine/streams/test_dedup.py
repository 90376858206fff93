"""Events that come twice."""

from __future__ import annotations

import json

import pytest

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.checkpoint import read_checkpoint, uncommit
from skimql.engine.streams.dedup import dedup_of
from skimql.engine.streams.place import stream_folder
from skimql.engine.streams.store import continuous
from skimql.errors import SkimqlError
from skimql.parser.join_graph import Column, TableSchema
from skimql.parser.statement import parse_statement

SCHEMA = TableSchema("s", (Column("Id", "bigint"), Column("part", "bigint"), Column("v", "bigint")))
STREAM = "CREATE STREAM s (Id BIGINT, part BIGINT, v BIGINT) FROM JSON 'p'"


def test_an_id_is_columns_of_the_stream():
    statement = parse_statement(f"{STREAM} DELETES WHEN v = 0 DEDUP (id, PART, id) WITHIN '2  Hours'")
    assert dedup_of(statement, SCHEMA) == (("Id", "part"), "2 hours")
    assert dedup_of(parse_statement(STREAM), SCHEMA) == ((), "")


@pytest.mark.parametrize(
    ("clause", "code", "marked"),
    [
        ("DEDUP (ident) WITHIN '1 hour'", "SKIMQL_UNKNOWN_COLUMN", "ident"),
        ("DEDUP (id) WITHIN 'soon'", "SKIMQL_BAD_SETTING", "'soon'"),
        ("CHANGES DEBEZIUM DEDUP (id) WITHIN '1 hour'", "SKIMQL_STREAM_UNSUPPORTED", "id"),
    ],
)
def test_what_is_no_id_or_no_time_is_refused_where_it_stands(clause, code, marked):
    statement = parse_statement(f"{STREAM} {clause}")
    with pytest.raises(SkimqlError) as fault:
        dedup_of(statement, SCHEMA)
    start, end = fault.value.span
    assert (fault.value.code, statement.sql[start:end]) == (code, marked)


def test_an_id_counts_once_whatever_is_read_again(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()

    def write(number, *events):
        lines = [e if isinstance(e, str) else json.dumps({"id": e[0], "v": e[1]}) for e in events]
        (folder / f"{number}.json").write_text("\n".join(lines) + "\n")

    write(0, (1, 5), (1, 5), (2, 7), (None, 1), (None, 1), "{torn", "{torn too")
    session = Session(spark, catalog=tmp_path / "catalog")
    session.sql(f"CREATE STREAM s (id BIGINT, v BIGINT) FROM JSON '{folder}' DEDUP (id) WITHIN '1 hour'")
    session.sql(
        "CREATE CONTINUOUS VIEW q WITH (trigger = 'available now') AS"
        " SELECT APPROXIMATE COUNT(*) AS n, SUM(v) AS s FROM s"
    )
    assert answer(session) == (4, 5 + 7 + 1 + 1, 2)
    write(1, (1, 5), (3, 9))
    session.sql("RESUME q")
    assert answer(session) == (5, 23, 2)
    # The newest state is cut off, and its batch is read again; then one that the state has comes again.
    catalog = Catalog(session.catalog.folder)
    stream = continuous(catalog).streams["s"]
    assert stream.state.batch >= 1
    cut = tmp_path / "catalog" / stream.state.file
    cut.write_bytes(cut.read_bytes()[:-1])
    session.sql("RESUME q")
    assert answer(session) == (5, 23, 2)
    checkpoint = stream_folder(catalog, stream) / "checkpoint"
    uncommit(checkpoint, read_checkpoint(checkpoint).committed)
    write(2, (3, 9), (2, 7), (4, 1))
    session.sql("RESUME q")
    assert answer(session) == (6, 24, 2)
    session.sql("TERMINATE q")
    session.sql("DROP STREAM s")
    assert not stream_folder(catalog, stream).exists()
    session.close()


def answer(session):
    (row,) = session.sql("SELECT * FROM q").records()
    return row["n"], row["s"], session.sql("SHOW STREAMS").records()[0]["bad"]
