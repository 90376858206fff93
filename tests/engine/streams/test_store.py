"""States in a catalog: the newest that is whole, replaced in one step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.continuous import declared, stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.state import StreamState
from skimql.engine.streams.store import (
    continuous,
    find_stream,
    find_view,
    load,
    load_other,
    refuse_asked,
    save,
    tell_fault,
)
from skimql.errors import CorruptSketch, StreamError, UnknownName
from skimql.parser.syntax import Part


@pytest.fixture
def catalog(tmp_path):
    return declared(
        Catalog(tmp_path / "c"), [stream_of("s", "k BIGINT")], {"q": "SELECT APPROXIMATE COUNT(*) FROM s"}
    )


def stream(catalog):
    return continuous(catalog).streams["s"]


def advance(catalog, *batches):
    for batch in batches:
        now = stream(catalog)
        save(catalog, now, load(catalog, now, 1).file, StreamState(now.id, 1, batch, "q"))


def cut(catalog, state):
    file = catalog.folder.path / state.file
    file.write_bytes(file.read_bytes()[:-1])


def test_the_last_two_states_are_there_and_older_ones_go(catalog):
    advance(catalog, 0, 1, 2, 3)
    now = stream(catalog)
    assert (now.state.batch, now.before.batch) == (3, 2)
    assert load(catalog, now, 1).state.batch == 3
    files = [n for n in catalog.folder.names() if n.endswith(".state")]
    assert {now.state.file, now.before.file} <= set(files)
    assert len(files) <= 4


def test_where_the_newest_is_cut_off_the_one_before_is_taken_and_the_next_goes_on_from_it(catalog):
    advance(catalog, 0, 1)
    cut(catalog, stream(catalog).state)
    found = load(catalog, stream(catalog), 1)
    assert (found.state.batch, "SHA-256" in found.lost) == (0, True)
    advance(catalog, 1)
    now = stream(catalog)
    assert (now.state.batch, now.before.batch, load(catalog, now, 1).lost) == (1, 0, "")


def test_where_both_are_cut_off_nothing_is_made_up(catalog):
    advance(catalog, 0, 1)
    cut(catalog, stream(catalog).state)
    cut(catalog, stream(catalog).before)
    with pytest.raises(CorruptSketch):
        load(catalog, stream(catalog), 1)


def test_the_first_of_all_may_be_cut_off(catalog):
    advance(catalog, 0)
    cut(catalog, stream(catalog).state)
    found = load(catalog, stream(catalog), 1)
    assert (found.state.batch, bool(found.lost)) == (None, True)


def test_nobody_overwrites_what_another_has_written(catalog):
    before = stream(catalog)
    advance(catalog, 0)
    with pytest.raises(StreamError, match="changed by another process") as fault:
        save(catalog, before, None, StreamState(before.id, 1, 0, "q"))
    assert fault.value.code == "SKIMQL_STATE_CHANGED"
    catalog.change_streams(lambda now, _: replace(now, streams={"s": replace(stream(catalog), id="0" * 32)}))
    with pytest.raises(StreamError, match="changed by another process"):
        save(catalog, before, None, StreamState(before.id, 1, 0, "q"))


def test_a_state_of_another_stream_is_none(catalog):
    now = stream(catalog)
    save(catalog, now, None, StreamState("f" * 32, 1, 0, "q"))
    with pytest.raises(CorruptSketch, match="not the state of stream s"):
        load(catalog, replace(stream(catalog), before=stream(catalog).state), 1)


def test_why_a_stream_stopped_is_told_until_it_goes_on(catalog):
    tell_fault(catalog, stream(catalog), "a bad day")
    assert stream(catalog).fault == "a bad day"
    advance(catalog, 0)
    assert stream(catalog).fault == ""


def test_a_stream_is_no_table(catalog):
    text = "SELECT APPROXIMATE COUNT(*) FROM s;"
    unknown = UnknownName("there is no table 's'", "SKIMQL_UNKNOWN_TABLE", text, (33, 34))
    with pytest.raises(StreamError, match="s is a stream") as fault:
        refuse_asked(catalog, unknown)
    assert (fault.value.code, fault.value.span) == ("SKIMQL_STREAM_ASKED", (33, 34))
    assert fault.value.hint == "CREATE CONTINUOUS VIEW q AS SELECT APPROXIMATE COUNT(*) FROM s"
    refuse_asked(catalog, UnknownName("no table", "SKIMQL_UNKNOWN_TABLE", text, (0, 6)))


def test_names_that_are_not_there_list_near_ones(catalog):
    with pytest.raises(UnknownName, match="no stream t") as fault:
        find_stream(catalog, "DROP STREAM t", Part("t"))
    assert (fault.value.code, fault.value.hint) == ("SKIMQL_UNKNOWN_STREAM", "s")
    with pytest.raises(UnknownName, match="no continuous view r") as fault:
        find_view(catalog, "PAUSE r", Part("r"))
    assert fault.value.hint == "q"
    assert find_stream(catalog, "", Part("S")).name == "s"
    assert find_view(catalog, "", Part("Q")).name == "q"


def test_the_state_of_another_stream_is_read_again_where_it_was_just_replaced(catalog, monkeypatch):
    advance(catalog, 0)
    reads = []

    def once(found, now, seed):
        reads.append(now.state.batch)
        if len(reads) == 1:
            advance(Catalog(catalog.folder), 1, 2)
            raise CorruptSketch("it is gone")
        return load(found, now, seed)

    monkeypatch.setattr("skimql.engine.streams.store.load", once)
    assert load_other(catalog, "S", 1).batch == 2
    assert reads == [0, 2]
