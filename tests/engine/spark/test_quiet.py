"""The end of a JVM is told by an error of ours, and the user's own logging stays as it is."""

from __future__ import annotations

import logging
import socketserver
from types import SimpleNamespace

import pytest

from skimql.engine.spark.quiet import quiet_gateway, quiet_session

# As py4j does it, in a module of that name and on the root logger.
PY4J = compile("logging.error(text)", "java_gateway.py", "exec")
LOST = "Exception while sending command."


@pytest.fixture
def root():
    """The root logger without filters, those of a session of this process among them; they are put back afterwards."""
    logger = logging.getLogger()
    before = list(logger.filters)
    logger.filters.clear()
    yield logger
    logger.filters[:] = before


def told(caplog, text):
    caplog.clear()
    exec(PY4J, {"logging": logging, "text": text})
    logging.getLogger().error(LOST)
    return [(r.module, r.getMessage()) for r in caplog.records]


def test_within_a_call_only_the_end_of_a_jvm_is_not_logged(caplog, root):
    own, before = ("test_quiet", LOST), list(root.filters)
    assert told(caplog, LOST) == [("java_gateway", LOST), own]
    with quiet_gateway(), quiet_gateway():
        assert told(caplog, LOST) == [own]
        assert told(caplog, "another") == [("java_gateway", "another"), own]
    assert root.filters == before
    assert told(caplog, LOST) == [("java_gateway", LOST), own]


def test_a_session_that_we_have_started_says_nothing_of_its_end_and_all_else(caplog, capsys, root):
    server = socketserver.BaseServer(("nowhere", 0), None)
    quiet_session(SimpleNamespace(_accumulatorServer=server))
    assert told(caplog, LOST) == [("test_quiet", LOST)]
    for fault, silent in ((EOFError(), True), (ConnectionResetError(), True), (ValueError("ours"), False)):
        try:
            raise fault
        except type(fault):
            server.handle_error(None, "there")
        assert ("Traceback" not in capsys.readouterr().err) == silent
