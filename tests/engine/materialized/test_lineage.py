"""What kept sketches have read."""

from support.kept import kept

from skimql.engine.catalog.form import Lineage, LineageFile
from skimql.engine.materialized.lineage import appended_elsewhere


def read(source, *paths, is_table=False):
    return Lineage(
        source, is_table, None, tuple(LineageFile(p, 1, 1) for p in paths), None, "2026-11-28T00:00:00Z"
    )


def test_a_rebuilt_sketch_takes_again_what_was_appended_from_elsewhere():
    table, elsewhere, within = (
        read("t", "/t/1", "/t/2", is_table=True),
        read("/new/3", "/new/3"),
        read("/t/2", "/t/2"),
    )
    head = kept(
        "s", "t", {"k": [1]}, lineage=(table, elsewhere, within, read("t", "/t/9", is_table=True))
    ).head
    assert appended_elsewhere(head, table) == (elsewhere,)
