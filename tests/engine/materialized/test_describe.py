"""SHOW SKETCHES and DESCRIBE SKETCH, without Spark."""

import pyarrow as pa
from support.kept import kept, remember

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.describe import BRIEF, COLUMNS, describe_rows, show_rows, told
from skimql.engine.streams.describe import show_queries, show_streams

SKETCHES = [
    kept("orders_by_id", "orders", {"id": [1, 2]}),
    kept("lines", "lines", {"oid": [1]}, summed=("price", [9])),
]


def test_sketches_are_listed_by_name_and_by_pattern():
    catalog = remember(Catalog(), *SKETCHES)
    assert [r["sketch"] for r in show_rows(catalog).records()] == ["lines", "orders_by_id"]
    assert [r["sketch"] for r in show_rows(catalog, "ORD*|nosuch").records()] == ["orders_by_id"]
    assert set(BRIEF) <= set(COLUMNS)


def test_a_sketch_tells_what_it_is_of():
    catalog = remember(Catalog(), *SKETCHES)
    head = catalog.heads()[0] if catalog.heads()[0].name == "lines" else catalog.heads()[1]
    rows = {r["property"]: r["value"] for r in describe_rows(catalog, head, extended=True).records()}
    assert (rows["weight"], rows["tuples"], rows["time zone"]) == ("SUM(price)", "1", "UTC")
    assert "verified" in rows["SHA-256"]


def test_what_a_file_says_acts_on_no_terminal():
    (row,) = told(kept("s\x1b[2J", "t", {"k": [1]}).head, 0.1, "a\x07note").records()
    assert "\x1b" not in row["sketch"]


def test_what_is_listed_has_the_same_types_whatever_is_there():
    # A client that asks by JDBC or ODBC lays its columns out by them.
    some = remember(Catalog(), *SKETCHES)
    schema = show_rows(some).arrow().schema
    assert schema == show_rows(Catalog()).arrow().schema
    assert schema.equals(told(SKETCHES[0].head, 0.1).arrow().schema)
    assert not any(pa.types.is_null(f.type) for f in schema)
    for shown in (show_streams, show_queries):
        assert not any(pa.types.is_null(f.type) for f in shown(Catalog()).arrow().schema)
