"""The manifest of a catalog."""

import pytest
from support.kept import kept, schema_of

from skimql import CorruptSketch
from skimql.engine.catalog.folder import MemoryFolder
from skimql.engine.catalog.manifest import (
    KnownTable,
    Manifest,
    decode,
    encode,
    entry,
    numbered,
    read_manifest,
    without_secrets,
)

HEAD = kept("s", "t", {"k": [1]}).head
TABLE = KnownTable(schema_of("t", ["k"]), "s3://me:word@host/t?token=x", {"header": "true", "password": "p"})


def test_what_is_written_is_read():
    made = Manifest(id="x" * 32).next(
        sketches={"s": entry("0" * 32 + ".parquet", b"data", HEAD)},
        tables={"t": without_secrets(TABLE)},
        ansi=True,
        time_zone="UTC",
    )
    read = decode(encode(made), "here")
    assert read == made
    assert read.digest
    assert read.sketches["s"].head == HEAD


def test_secrets_are_not_written_but_their_names_are():
    bare = without_secrets(TABLE)
    assert "password" in bare.withheld
    assert b"word" not in encode(Manifest(id="x" * 32, tables={"t": bare})).replace(b'"password"', b"")


@pytest.mark.parametrize(
    "spoil",
    [lambda d: d[:-2], lambda d: d.replace(b"generation", b"generatiom"), lambda d: b"{}", lambda d: b""],
)
def test_damage_is_refused(spoil):
    with pytest.raises(CorruptSketch):
        decode(spoil(encode(Manifest(id="x" * 32))), "here")


def test_where_nothing_was_written_there_is_nothing():
    assert read_manifest(MemoryFolder()).sketches == {}
    assert numbered(3) == "catalog-00000003.json"
