"""`skimql thrift`: what it says, and when it ends."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest
import typer.testing

from skimql import EnvironmentFault
from skimql.cli import thrift
from skimql.cli.app import app
from skimql.cli.request import Request

REQUEST = Request((), "table", (("t", "t.parquet"),), None, False, False, {}, False, False, True)


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_it_serves_until_a_signal_and_warns_where_others_reach_it(monkeypatch, capsys, host, warned):
    @contextlib.contextmanager
    def serving(host, port, conf, catalog, tables, settings):
        assert (port, tables) == (7, {"t": "t.parquet"})
        os.kill(os.getpid(), signal.SIGTERM)
        yield 8

    monkeypatch.setattr("skimql.engine.extension.thrift.serving", serving)
    assert thrift.serve_thrift(REQUEST, host, 7) == 0
    told = capsys.readouterr().err
    assert f"jdbc:hive2://{host}:8/" in told
    assert ("no password" in told) == warned


def test_tables_are_named_behind_the_command_too(monkeypatch):
    told = []
    monkeypatch.setattr(thrift, "serve_thrift", lambda request, *_: told.append(request.tables) or 0)
    typer.testing.CliRunner().invoke(app, ["-t", "a=a.csv", "thrift", "-t", "b=b.csv"])
    assert [dict(tables) for tables in told] == [{"a": "a.csv", "b": "b.csv"}]


def test_what_cannot_be_served_is_told(monkeypatch, capsys):
    def serving(*_):
        raise EnvironmentFault("nothing can listen there", "SKIMQL_PORT")

    monkeypatch.setattr("skimql.engine.extension.thrift.serving", serving)
    assert thrift.serve_thrift(REQUEST, "127.0.0.1", 7) == 1
    assert "nothing can listen there" in capsys.readouterr().err
