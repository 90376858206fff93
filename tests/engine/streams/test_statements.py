"""Statements about streams and views, on a catalog."""

from __future__ import annotations

import pytest
from support.continuous import declared, stream_of

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.spark.own import OwnSpark
from skimql.engine.streams.statements import refreshed_in, view_in
from skimql.engine.streams.store import continuous
from skimql.errors import SkimqlError


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    declared(
        Catalog(tmp_path / "c"),
        [stream_of("s", "k BIGINT"), stream_of("t", "k BIGINT")],
        {
            "q": "SELECT APPROXIMATE COUNT(*) FROM s",
            "r": "SELECT APPROXIMATE COUNT(*) FROM s JOIN t ON s.k = t.k",
        },
    )
    return Session(catalog=tmp_path / "c")


@pytest.mark.parametrize("text", ["SELECT * FROM q", "select *\nfrom Q ;", "SELECT * FROM `q`"])
def test_a_view_is_asked_for_by_its_name(session, text):
    assert view_in(text, continuous(session.catalog).views).name == "q"


@pytest.mark.parametrize("text", ["SELECT * FROM other", "SELECT n FROM q", "SELECT * FROM q, s", "FROM q"])
def test_anything_else_is_not(session, text):
    assert view_in(text, continuous(session.catalog).views) is None


def test_a_view_is_refreshed_by_its_name_and_what_spark_refreshes_is_spark_s(session):
    views = continuous(session.catalog).views
    assert [refreshed_in(t, views).name for t in ("REFRESH q", "refresh `R`;")] == ["q", "r"]
    assert [refreshed_in(t, views) for t in ("REFRESH TABLE q", "REFRESH 'q'", "REFRESH s")] == [None] * 3
    assert session.sql("REFRESH q").notes == ("no table is joined with its streams",)


def test_pausing_a_view_pauses_those_that_share_its_streams(session):
    answer = session.sql("PAUSE q")
    assert answer.notes == ("its streams stand still, and with them r",)
    assert [r["state"] for r in session.sql("SHOW QUERIES").records()] == ["paused", "paused"]


def test_a_stream_goes_when_no_view_reads_it(session):
    with pytest.raises(SkimqlError, match="view q reads stream s") as fault:
        session.sql("DROP STREAM s")
    assert (fault.value.code, fault.value.hint) == ("SKIMQL_STREAM_IS_READ", "TERMINATE q; TERMINATE r")
    for text in fault.value.hint.split("; "):
        assert session.sql(text).notes == ("terminated",)
    assert session.sql("DROP STREAM s").notes == ("dropped",)
    assert session.sql("DROP STREAM IF EXISTS s").notes == ("there is no stream s",)
    assert [r["stream"] for r in session.sql("SHOW STREAMS").records()] == ["t"]
    with pytest.raises(SkimqlError, match="no stream s"):
        session.sql("DESCRIBE STREAM s")
    with pytest.raises(SkimqlError, match="no continuous view q"):
        session.sql("RESUME q")
