"""The process that `benchmarks.kills` kills: two streams, run until all of their files are read."""

from __future__ import annotations

import faulthandler
import signal
import sys
import time
from pathlib import Path
from typing import Any

from skimql import Session, SkimqlError
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.spark.session import start_spark
from skimql.engine.streams.place import stream_folder
from skimql.engine.streams.store import continuous

from .kills_data import NAMES, SINKS, VIEWS, planned

# A driver that lives for seconds compiles nothing, and its plans are made once.
SHORT_LIVED = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def main() -> None:
    """``python -m benchmarks.kills_child FOLDER FILES MASTER``."""
    folder, files, master = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    faulthandler.register(signal.SIGUSR1)
    spark = start_spark({"spark.master": master, **SHORT_LIVED})
    session = Session(spark, catalog=folder / "catalog")
    if len(continuous(session.catalog).views) < len(VIEWS):
        _create(session, folder)
    # Every view is there before the first event: none begins in the middle.
    for name in NAMES:
        for file in sorted((folder / f"{name} to come").iterdir()):
            file.rename(folder / name / file.name)
    said = False
    while files and not all(_done(session.catalog, name, files) for name in NAMES):
        stopped = [n for n in NAMES if not session._running_streams().of(n)]
        if stopped:
            try:
                session.sql("RESUME pairs")
                _say(f"goes on with {' and '.join(stopped)}")
            except SkimqlError as fault:
                _say(f"cannot go on with {' and '.join(stopped)}: {fault.message}")
                time.sleep(0.5)
        elif not said:
            _say("runs")
            said = True
        time.sleep(0.05)
    session.close()
    _say("done")
    # An archive of classes is written while the JVM ends, in its own time.
    jvm: Any = spark.sparkContext._gateway
    spark.stop()
    jvm.proc.terminate()
    jvm.proc.wait()


def batch_of(catalog: Catalog, name: str) -> int:
    """The last batch in the state of a stream; -1 before the first."""
    stream = continuous(Catalog(catalog.folder)).streams.get(name)
    state = None if stream is None else stream.state
    return -1 if state is None or state.batch is None else state.batch


def _done(catalog: Catalog, name: str, files: int) -> bool:
    """Whether the state of a stream has all files."""
    stream = continuous(Catalog(catalog.folder)).streams[name]
    last = planned(stream_folder(catalog, stream) / "checkpoint").get(batch_of(catalog, name), -1)
    return last == files - 1


def _create(session: Session, folder: Path) -> None:
    columns = "k BIGINT, v BIGINT, op STRING, ts TIMESTAMP"
    for name in NAMES:
        session.sql(
            f"CREATE STREAM IF NOT EXISTS {name} ({columns}) FROM PARQUET '{folder / name}'"
            " OPTIONS (maxFilesPerTrigger = 1) DELETES WHEN op = 'd'"
        )
    for view, (settings, select) in VIEWS.items():
        if view not in continuous(session.catalog).views:
            sink = [f"sink = '{folder / 'sinks' / view}'"] if view in SINKS else []
            options = ", ".join(["trigger = '100 milliseconds'", *([settings] if settings else []), *sink])
            session.sql(f"CREATE CONTINUOUS VIEW {view} WITH ({options}) AS {select}")


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


if __name__ == "__main__":
    main()
