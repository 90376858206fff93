"""Where a stream lies, and who runs it."""

from __future__ import annotations

import pytest
from support.continuous import stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.place import forget_folder, is_running, lock_of, stream_folder
from skimql.errors import StreamError

STREAM = stream_of("s", "k BIGINT")


def test_only_a_catalog_in_a_folder_has_room_for_streams():
    with pytest.raises(StreamError, match="this session has one in memory") as fault:
        stream_folder(Catalog(), STREAM)
    assert (fault.value.code, fault.value.hint) == (
        "SKIMQL_STREAM_CATALOG",
        "skimql.Session(catalog='folder')",
    )


def test_who_holds_the_lock_runs_the_stream(tmp_path):
    catalog = Catalog(tmp_path)
    assert not is_running(catalog, STREAM)
    stream_folder(catalog, STREAM).mkdir(parents=True)
    with lock_of(catalog, STREAM):
        assert is_running(Catalog(tmp_path), STREAM)
    assert not is_running(catalog, STREAM)
    forget_folder(catalog, STREAM)
    assert not stream_folder(catalog, STREAM).exists()


def test_what_is_not_ours_in_a_stream_s_folder_stays(tmp_path):
    catalog = Catalog(tmp_path)
    folder = stream_folder(catalog, STREAM)
    made = ["lock", "holder", "checkpoint/metadata", "checkpoint/.metadata.crc", "checkpoint/offsets/0", "checkpoint/commits/.12.crc",
            "checkpoint/sources/0/9.compact", "checkpoint/state/0/1/2.delta", "checkpoint/state/0/0/_metadata/schema", "checkpoint/offsets/.3.0b1c-9.tmp",
            "quarantine/batch=3/part-00000-1a.json", "quarantine/batch=3/rows.json", "quarantine/batch=3/.rows.json.3c.tmp", "quarantine/batch=3/._SUCCESS.crc"]  # fmt: skip
    foreign = ["notes.txt", "checkpoint/mine", "quarantine/batch=3/mine.json", "7", "checkpoint/offsets/x"]
    for name in (*made, *foreign):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "0").write_text("mine")
    (folder / "checkpoint" / "link").symlink_to(outside)
    forget_folder(catalog, STREAM)
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == set(foreign)
    assert (outside / "0").read_text() == "mine"
