"""Passwords and the like among a table's options are never written; who needs them again is told so."""

from __future__ import annotations

import os
import stat

import pytest
from support.kept import kept, remember, schema_of

from skimql import DataError, Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.folder import open_folder
from skimql.engine.catalog.manifest import KnownTable
from skimql.engine.catalog.secrets import redacted, split_options
from skimql.engine.spark.own import OwnSpark

SECRET = "hunter2-xyz"
A = kept("a", "t", {"k": [1, 2, 2]}, rows=3, buckets=8)
OPTIONS = [
    "password", "PASSWORD", "dbPasswd", "pwd", "passphrase", "secret", "client_secret", "accessToken", "token", "apiKey",
    "fs.s3a.secret.key", "key", "sas", "credentials", "auth", "private_key",
]  # fmt: skip


def written(folder):
    return b"".join(p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())


@pytest.mark.parametrize("option", OPTIONS)
def test_a_secret_option_is_not_kept_and_its_name_is(option):
    assert split_options({option: SECRET, "header": True}) == ({"header": True}, (option,))


@pytest.mark.parametrize(
    "address",
    [
        f"jdbc:postgresql://host/db?user=me&password={SECRET}",
        f"jdbc:sqlserver://host;user=me;password={SECRET};encrypt=true",
        f"https://me:{SECRET}@host/x.csv",
        f"s3://{SECRET}:{SECRET}@bucket/x.parquet",
        f"https://host/x.csv?sv=1&sig=1&sas={SECRET}",
        f"abfs://c@a/x?AccessToken={SECRET}",
    ],
)
def test_an_address_with_a_secret_is_not_kept_and_shown_without_it(address):
    assert SECRET not in redacted(address)
    assert split_options({"url": address}) == ({}, ("url",))


@pytest.mark.parametrize(
    "plain", ["/data/a.parquet", "s3://bucket/passwords/x.parquet", "a@b.csv", "file:///a?b=c"]
)
def test_addresses_without_secrets_stay(plain):
    assert redacted(plain) == plain


def test_nothing_secret_stands_in_any_file_and_use_after_a_restart_says_what_is_missing(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    catalog = remember(Catalog(tmp_path / "c"), A)
    options = {"header": True, "password": SECRET, "url": f"jdbc:x://me:{SECRET}@host/db"}
    for _ in range(2):
        catalog.remember({"p": KnownTable(schema_of("p", ["k"]), f"https://me:{SECRET}@host/p.csv", options)})
    assert SECRET.encode() not in written(tmp_path)
    session = Session(catalog=tmp_path / "c")
    assert session.tables["p"].columns[0].name == "k"
    with pytest.raises(
        DataError, match="registered with password, path, url, which the catalog does not keep"
    ) as caught:
        session.tables.frame("p")
    assert caught.value.code == "SKIMQL_OPTIONS_WITHHELD"
    assert "password=..." in caught.value.hint
    # A sketch that is there answers all the same.
    assert session.sql("SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k").value == 5


def test_a_table_registered_with_secrets_works_in_its_session_and_asks_for_them_in_the_next(
    tmp_path, session
):
    (tmp_path / "t.csv").write_text("k\n1\n2\n")
    first = Session(session.spark, catalog=tmp_path / "c")
    first.table("t", tmp_path / "t.csv", password=SECRET, nullValue="NA")
    first.sql("CREATE SKETCH s ON t (k)")
    first.sql("REFRESH SKETCH s")
    assert SECRET.encode() not in written(tmp_path / "c")
    known = Catalog(tmp_path / "c").table("t")
    assert (dict(known.options), known.withheld) == ({"nullValue": "NA"}, ("password",))
    second = Session(session.spark, catalog=tmp_path / "c")
    with pytest.raises(DataError, match="registered with password"):
        second.sql("REFRESH SKETCH s")
    second.table("t", tmp_path / "t.csv", password=SECRET, nullValue="NA")
    second.sql("REFRESH SKETCH s")


def test_manifests_are_for_their_owner_and_sketches_as_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        remember(Catalog(tmp_path), A)
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        assert {m for n, m in modes.items() if n.endswith(".json")} == {0o600}
        assert {m for n, m in modes.items() if n.endswith(".parquet")} == {0o640}
        # Who shares a catalog says so once.
        (tmp_path / "catalog.json").chmod(0o640)
        Catalog(tmp_path).put(A)
        assert stat.S_IMODE((tmp_path / "catalog.json").stat().st_mode) == 0o640
    finally:
        os.umask(before)


def test_an_address_is_shown_without_its_secrets_in_errors():
    with pytest.raises(DataError) as caught:
        open_folder(f"nosuch://me:{SECRET}@host/c")
    assert SECRET not in str(caught.value)
