"""Serving a catalog."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest
from typer.testing import CliRunner

from skimql import Session
from skimql.cli.app import app


def test_there_must_be_views_to_serve(tmp_path):
    told = CliRunner().invoke(app, ["serve", "--catalog", str(tmp_path / "c")])
    assert (told.exit_code, "has no continuous view to run" in told.output) == (1, True)
    assert CliRunner().invoke(app, ["serve"]).exit_code == 2


def test_views_run_until_a_signal_and_the_batch_is_finished(spark, tmp_path):
    folder, place = tmp_path / "in", tmp_path / "c"
    folder.mkdir()
    (folder / "0.json").write_text(json.dumps({"k": 1}) + "\n")
    session = Session(spark, catalog=place)
    session.sql(f"CREATE STREAM s (k BIGINT) FROM JSON '{folder}'")
    session.sql(
        "CREATE CONTINUOUS VIEW q WITH (trigger = '100 milliseconds') AS SELECT APPROXIMATE COUNT(*) AS n FROM s"
    )
    session.close()

    def events():
        return Session(catalog=place).answer("SHOW QUERIES").records()[0]["events"] or 0

    handler = signal.getsignal(signal.SIGTERM)

    def stop():
        (folder / "1.json").write_text(json.dumps({"k": 2}) + "\n")
        until = time.monotonic() + 60
        while events() < 2 and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    told = CliRunner().invoke(app, ["serve", "--catalog", str(place)])
    assert (told.exit_code, "q: runs, over s" in told.output) == (0, True), told.output
    assert not spark.streams.active
    assert Session(catalog=place).answer("SELECT * FROM q").value == 2
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize("path", ["-t", "--table"])
def test_tables_are_given_as_to_any_other_run(tmp_path, path):
    told = CliRunner().invoke(
        app, [path, f"h={tmp_path / 'h.parquet'}", "serve", "--catalog", str(tmp_path / "c")]
    )
    assert told.exit_code == 1
