"""Views of streams by Spark: a file of each stream for every batch, read by Structured Streaming, asked by SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from skimql import Session
from skimql.engine.results.answer import Answer
from skimql.engine.spark.session import start_spark

from .stream_trials import NAMES, Events

COLUMNS = "k BIGINT, v BIGINT, sign BIGINT, ts TIMESTAMP"


@dataclass
class RunningOnSpark:
    """As `stream_trials.Running`: what is fed is read when a view is asked."""

    session: Session
    folder: Path
    views: list[str]
    _unread: bool = field(default=False)

    def feed(self, events: Mapping[str, Events], number: int) -> None:
        """Both streams get the file of their next batch."""
        for name, own in events.items():
            table = own.take(own.batch == number).table()
            pq.write_table(table, self.folder / name / f"{number:04}.parquet")
        self._unread = True

    def asked(self, view: str) -> list[dict[str, Any]]:
        """The rows of a view, by column."""
        self._read()
        found = self.session.sql(f"SELECT * FROM {view}")
        assert isinstance(found, Answer)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def predicted(self, view: str) -> float | None:
        """See `Running.predicted`."""
        self._read()
        found = self.session.sql("SHOW QUERIES EXTENDED").toPandas()
        return float(found.loc[found["query"] == view, "predicted"].item())

    def _read(self) -> None:
        """Let Spark read what was fed: the views of the same streams run together."""
        if self._unread:
            self.session.sql(f"RESUME {self.views[0]}")
            self._unread = False


@contextmanager
def running_on_spark(
    views: Mapping[str, tuple[str, Mapping[str, str]]], seed: int
) -> Iterator[RunningOnSpark]:
    """As `stream_trials.running`."""
    spark = start_spark(
        {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "2g",
            "spark.sql.session.timeZone": "UTC",
        }
    )
    with TemporaryDirectory(prefix="skimql-streams-") as made:
        folder = Path(made)
        session = Session(spark, catalog=folder / "catalog")
        session.sql(f"SET skimql.seed = {seed}")
        for name in NAMES:
            (folder / name).mkdir()
            source = f"FROM PARQUET '{folder / name}' OPTIONS (maxFilesPerTrigger = 1) WEIGHT sign"
            session.sql(f"CREATE STREAM {name} ({COLUMNS}) {source}")
        for name, (text, options) in views.items():
            given = ", ".join(f"{k} = '{v}'" for k, v in {"trigger": "available now", **options}.items())
            session.sql(f"CREATE CONTINUOUS VIEW {name} WITH ({given}) AS {text}")
        yield RunningOnSpark(session, folder, list(views))
        session.close()
