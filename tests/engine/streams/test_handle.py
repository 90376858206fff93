"""A view as an object."""

from __future__ import annotations

from support.continuous import MemorySpark, declared, stream_of
from support.memory import arrow

from skimql import Session
from skimql.engine.catalog.catalog import Catalog


def test_a_view_answers_and_has_listeners(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("s", "k BIGINT")],
        {"q": "SELECT APPROXIMATE COUNT(*) AS n FROM s"},
    )
    MemorySpark(catalog, "s", tmp_path / "checkpoint").run([arrow("k BIGINT", [(1,), (2,)])])
    heard = []
    session = Session(catalog=tmp_path / "c")
    view = session.view("Q")
    assert (view.name, view.answer().value) == ("q", 2)
    view.on_batch(heard.append)
    assert session._running_streams().listeners == {"q": [heard.append]}
