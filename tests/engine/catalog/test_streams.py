"""Streams and views in a manifest."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.continuous import declared, stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.manifest import Manifest, decode, encode
from skimql.engine.catalog.streams import Continuous, StoredState, from_json, to_json
from skimql.errors import CorruptSketch

STATE = StoredState("0" * 32 + ".state", "1" * 64, 10, 3)


@pytest.fixture
def found(tmp_path):
    stream = replace(
        stream_of("S", "k BIGINT, op STRING", "-1", "csv"),
        state=STATE,
        fault="why",
        changes="delta",
        dedup=("k",),
        within="1 hour",
    )
    stream = replace(stream, options={"header": "true", "password": "x"}, settings=(("a", "b"),))
    tables = {"t": ("k BIGINT", [(1,)])}
    from support.memory import arrow

    catalog = declared(
        Catalog(tmp_path),
        [stream],
        {"Q": ("SELECT APPROXIMATE COUNT(*) FROM s JOIN t ON s.k = t.k", {"trigger": "1 second"})},
        {n: arrow(*t) for n, t in tables.items()},
    )
    return replace(catalog.manifest.continuous, streams={"s": stream})


def test_what_is_written_is_read_and_nothing_secret_is_written(found):
    again = from_json(json.loads(json.dumps(to_json(found))))
    assert again.views == found.views
    kept = again.streams["s"]
    assert (kept.options, kept.withheld) == ({"header": "true"}, ("password",))
    assert replace(kept, options=found.streams["s"].options, withheld=()) == found.streams["s"]
    assert (again.files, [v.name for v in again.readers("S")], again.streams["s"].ddl) == (
        {STATE.file},
        ["Q"],
        "`k` bigint, `op` string",
    )


def test_a_catalog_without_streams_is_written_as_older_programs_read_it(found):
    assert json.loads(encode(Manifest()))["catalog"]["format_version"] == 1
    assert "streams" not in json.loads(encode(Manifest()))["catalog"]
    whole = Manifest(continuous=found)
    assert json.loads(encode(whole))["catalog"]["format_version"] == 2
    assert decode(encode(whole), "x").continuous.views == found.views
    assert decode(encode(whole), "x").files == {STATE.file}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["streams"]["s"].update(name="other"),
        lambda d: d["streams"]["s"].update(id="../../x"),
        lambda d: d["streams"]["s"].update(format="orc"),
        lambda d: d["streams"]["s"].update(state=["/etc/passwd", "", 1, 1]),
        lambda d: d["streams"].clear(),
        lambda d: d["views"]["q"].update(confidence=2.0),
        lambda d: d["views"]["q"].update(rows=0),
        lambda d: d["views"]["q"].pop("folds"),
    ],
)
def test_what_is_no_stream_is_refused(found, change):
    from skimql.engine.catalog.file import canonical, digest

    content = json.loads(encode(Manifest(continuous=found)))["catalog"]
    change(content)
    with pytest.raises(CorruptSketch):
        decode(canonical({"catalog": content, "sha256": digest(canonical(content))}), "x")


def test_readers_of_nothing_are_none():
    assert Continuous().readers("s") == ()
    assert Continuous().files == set()
