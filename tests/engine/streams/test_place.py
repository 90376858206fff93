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
