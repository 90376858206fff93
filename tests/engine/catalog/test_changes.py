"""A change of a catalog: what it makes, and what is undone."""

import pytest

from skimql import DataError
from skimql.engine.catalog import catalog as catalog_module
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.changes import Change, begin, refuse_foreign
from skimql.engine.catalog.folder import MemoryFolder, open_folder
from skimql.engine.catalog.manifest import read_manifest


def begun():
    folder = MemoryFolder()
    begin(folder)
    return folder, read_manifest(folder)


def test_a_change_that_is_undone_leaves_nothing():
    folder, before = begun()
    there = set(folder.names())
    change = Change(folder, before)
    name = change.keep(b"data")
    assert folder.read(name) == b"data"
    change.undo()
    assert set(folder.names()) == there


def test_a_published_change_is_the_present_state_and_cannot_be_undone():
    folder, before = begun()
    change = Change(folder, before)
    change.publish(before.next(ansi=True, time_zone="UTC"))
    change.undo()
    after = read_manifest(folder)
    assert (after.generation, after.ansi) == (before.generation + 1, True)


def test_a_folder_of_something_else_is_no_place_for_a_catalog(tmp_path):
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(DataError) as fault:
        refuse_foreign(open_folder(tmp_path))
    assert fault.value.code == "SKIMQL_NOT_A_CATALOG"
    (tmp_path / "letters.txt").rename(tmp_path / ".hidden")
    refuse_foreign(open_folder(tmp_path))


def test_a_catalog_that_another_writer_begins_meanwhile_is_no_folder_of_something_else(tmp_path, monkeypatch):
    """Between looking for a catalog and looking at the folder another process makes the first sketch."""
    mine, names = Catalog(tmp_path), []

    def meanwhile(folder):
        if not names:
            names.append("theirs")
            Catalog(tmp_path).remember({}, ansi=True)
        refuse_foreign(folder)

    monkeypatch.setattr(catalog_module, "refuse_foreign", meanwhile)
    mine.remember({}, ansi=True, time_zone="Asia/Kolkata")
    assert names
    assert Catalog(tmp_path).manifest.time_zone == "Asia/Kolkata"
