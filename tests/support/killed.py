"""A driver that goes on with a view, and is killed with ``kill -9``, its JVM with it, at a place of a batch of stream a.

``python killed.py CATALOG VIEW PLACE BATCH``; places are "built" (the state is not written), "saved" (Spark has not
committed), "committed", and "nowhere". Before it goes on it runs the statements that stdin has, one a line, and says of
each when it has run: what a test does before it closes stdin is there when the view goes on.
"""

from __future__ import annotations

import os
import signal
import sys

from quick import QUICK_PLANS

from skimql import Session
from skimql.engine.spark.session import start_spark
from skimql.engine.streams import batches


def main() -> None:
    """Go on with the view until the kill."""
    catalog, view, place, batch = sys.argv[1:]

    def die(where, stream, number):
        if (where, stream, number) == (place, "a", int(batch)):
            os.killpg(0, signal.SIGKILL)

    take, save = batches.Batches.__call__, batches.save

    def taken(self, frame, number):
        die("committed", self.name, number - 1)
        return take(self, frame, number)

    def saved(catalog, stream, good, state):
        die("built", stream.name, state.batch)
        save(catalog, stream, good, state)
        die("saved", stream.name, state.batch)

    batches.Batches.__call__, batches.save = taken, saved
    conf = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.sql.session.timeZone": "UTC"}
    spark = start_spark({**conf, "spark.sql.shuffle.partitions": "2", **QUICK_PLANS})
    session = Session(spark, catalog=catalog)
    for statement in sys.stdin:
        session.sql(statement)
        print(statement, end="", flush=True)
    session.sql(f"RESUME {view}")


if __name__ == "__main__":
    main()
