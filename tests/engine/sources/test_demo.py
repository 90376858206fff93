"""The demo tables, converted once."""

from skimql.engine.sources import demo


def test_the_five_tables_are_there_and_converted_once():
    first = demo.demo_tables()
    stamps = {n: p.stat().st_mtime_ns for n, p in first.items()}
    assert tuple(first) == demo.TABLES
    assert {n: p.stat().st_mtime_ns for n, p in demo.demo_tables().items()} == stamps
