"""Who is told of batches."""

from __future__ import annotations

import logging

from support.continuous import MemorySpark, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.listeners import tell


def test_listeners_are_told_the_answer_and_their_faults_stop_nothing(tmp_path, caplog):
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("s", "k BIGINT")],
        {"q": "SELECT APPROXIMATE COUNT(*) AS n FROM s", "r": "SELECT APPROXIMATE COUNT(k) AS n FROM s"},
    )
    MemorySpark(catalog, "s", tmp_path / "checkpoint").run([arrow("k BIGINT", [(1,), (2,)])])
    heard = []

    def fails(answer):
        raise RuntimeError("no")

    with caplog.at_level(logging.WARNING, "skimql"):
        tell(Catalog(tmp_path / "c"), "s", {"q": [fails, lambda a: heard.append(a.value)]})
    assert heard == [2]
    assert "a listener of view q failed: RuntimeError('no')" in caplog.text
    tell(Catalog(tmp_path / "c"), "s", {})


def test_a_batch_that_the_state_has_tells_nobody(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "c"), [stream_of("s", "k BIGINT")], {"q": "SELECT APPROXIMATE COUNT(*) FROM s"}
    )
    batch = arrow("k BIGINT", [(1,)])
    handler = MemorySpark(catalog, "s", tmp_path / "checkpoint").run([batch])
    assert handler(batch, 0) is False
    assert handler(batch, 1) is True
