"""Fixtures of the whole suite: one Spark session a run, quiet and small."""

from __future__ import annotations

import pytest
from hypothesis import settings

# The same examples in every run: a failure is one that can be looked at again.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def spark():
    """The one Spark session of the run: local[2], two shuffle partitions, no UI, in UTC."""
    from skimql.engine.spark import start_spark

    session = start_spark(
        {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "2g",
            "spark.sql.session.timeZone": "UTC",
        }
    )
    yield session
    session.stop()


@pytest.fixture
def session(spark):
    """A SkimQL session with nothing registered; what a test registers is gone after it."""
    from skimql import Session

    made = Session(spark)
    yield made
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
