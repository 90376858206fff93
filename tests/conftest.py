"""Fixtures of the whole suite: one Spark session a run, quiet and small; pure tests beside it where there are two workers."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from support import class_archive
from support.quick import QUICK_PLANS, as_spark_has_it

# What a shell starts in its background ignores SIGINT, and so would all that the tests start to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a failure is one that can be looked at again.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")

# What is flushed to the disk survives a power cut, which no test has; each of thousands of files would wait for it.
os.fsync = lambda handle: None

# Thousands of small jobs run once each, and processes live for seconds: the JVM's second compiler and its threads for
# garbage cost more than they give back. `spark-submit` hands this to every JVM that a test starts.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


def pytest_configure(config):
    if getattr(config.option, "dist", "no") not in ("no", "loadgroup"):
        raise pytest.UsageError("workers of a run share one Spark session: add --dist loadgroup")
    if "SPARK_SUBMIT_OPTS" not in os.environ:
        if getattr(config.option, "numprocesses", None):
            with TemporaryDirectory() as folder:
                class_archive.make(JVM, Path(folder))
        os.environ["SPARK_SUBMIT_OPTS"] = class_archive.with_archive(JVM)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """All tests on the Spark session go to one worker (the largest group starts first), the others to whoever is free."""
    for item in items:
        if "spark" in item.fixturenames:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))


_the_one_session = []


@pytest.fixture(autouse=True)
def _no_other_session():
    """Whatever starts Spark in this process beside the fixture is a fault of that test."""
    yield
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and not _the_one_session:
        assert pyspark.SparkContext._active_spark_context is None, "started Spark without the fixture"


@pytest.fixture(scope="session")
def spark(request):
    """The one Spark session of the run: local[2], two shuffle partitions, no UI, in UTC."""
    if getattr(request.config.option, "loadgroup", False):
        theirs = [i.nodeid for i in request.session.items if "spark" in i.fixturenames]
        assert all(n.endswith("@spark") for n in theirs), (
            "pytest-xdist lost its groups: a session in every worker"
        )
    from skimql.engine.spark.session import start_spark

    session = start_spark(
        {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "2g",
            "spark.sql.session.timeZone": "UTC",
            # Without its second compiler the JVM reserves 48 MB for code, which the suite's queries fill: it then throws
            # code away and compiles it again. Nearly all of the heap is young.
            "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m -Xms1g -Xmn640m",
            # What Spark keeps of queries long gone, for a UI that nobody looks at.
            "spark.sql.ui.retainedExecutions": "20",
            "spark.ui.retainedJobs": "100",
            "spark.ui.retainedStages": "100",
            **QUICK_PLANS,
        }
    )
    _the_one_session.append(session)
    yield session
    session.stop()


@pytest.fixture
def as_users_have_it(spark):
    """Spark's own settings in the place of `QUICK_PLANS`: generated code, plans made anew between stages."""
    as_spark_has_it(spark)
    yield
    for name, value in QUICK_PLANS.items():
        spark.conf.set(name, value)


@pytest.fixture
def session(spark):
    """A SkimQL session with nothing registered; what a test registers is gone after it."""
    from support.tables import forget_views

    from skimql import Session

    # Sketches, whatever would be cheaper: what aims at an error is tested by itself.
    made = Session(spark, error=None)
    yield made
    forget_views(spark)
