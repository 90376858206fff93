"""Whether what a sketch has read is still what its table has; no Spark."""

from support.kept import kept, schema_of

from skimql.engine.catalog.form import Lineage
from skimql.engine.catalog.manifest import KnownTable
from skimql.engine.materialized.staleness import other_source, stale_note
from skimql.engine.sources.listing import file_now


class Known:
    """One table at one path."""

    def __init__(self, source):
        self.source = source

    def known(self, name):
        return KnownTable(schema_of(name, ["k"]), self.source, {})


def sketch(folder):
    files = tuple(file_now(str(p)) for p in sorted(folder.iterdir()))
    return kept(
        "s", "t", {"k": [1]}, lineage=(Lineage(str(folder), True, None, files, None, "2026-11-28T00:00:00Z"),)
    ).head


def test_new_changed_and_gone_files_are_told(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("k\n1\n")
    head, tables = sketch(tmp_path), Known(str(tmp_path))
    assert stale_note(head, tables, False) == ""
    (tmp_path / "c.csv").write_text("k\n2\n")
    assert (
        f"since then 1 new file: APPEND SKETCH s FROM '{tmp_path}/c.csv', or REFRESH SKETCH s"
        in stale_note(head, tables, False)
    )
    (tmp_path / "a.csv").write_text("k\n1\n3\n")
    (tmp_path / "b.csv").unlink()
    assert "1 new, 1 changed, 1 gone files: REFRESH SKETCH s" in stale_note(head, tables, False)


def test_a_name_that_stands_for_another_path_is_another_source(tmp_path):
    head = sketch(tmp_path)
    assert not other_source(head, Known(str(tmp_path)))
    assert other_source(head, Known("/elsewhere"))
