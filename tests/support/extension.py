"""The Spark SQL extension on the run's one Spark session."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from support.imports import ROOT

from skimql.engine.extension import jar
from skimql.engine.extension.enable import disable, enable

FOLDER = ROOT / "engine" / "extension"


@contextmanager
def with_jar(folder):
    """The package's jar; where it was installed without one, built here from the same sources."""
    with pytest.MonkeyPatch.context() as patch:
        if jar.find() is None:
            if jar.find_javac() is None:
                pytest.skip("there is no Java compiler here")
            built = jar.build(folder / jar.NAME, FOLDER)
            version = jar.version(FOLDER)
            patch.setattr(jar, "find", lambda: built)
            patch.setattr(jar, "version", lambda *_: version)
        yield


@contextmanager
def enabled(spark, folder, **options):
    """The session that answers for a Spark session whose parser knows our statements, within."""
    with with_jar(folder):
        session = enable(spark, **options)
        try:
            yield session
        finally:
            disable(spark)


def refused(spark, text, **options):
    """What a statement is refused with: class, condition, message, line and column."""
    from pyspark.errors import PySparkException

    try:
        spark.sql(text, **options).collect()
    except PySparkException as fault:
        origin = fault._origin
        place = [getattr(origin, name)() for name in ("line", "startPosition")]
        places = tuple(p.get() if p.isDefined() else None for p in place)
        return type(fault).__name__, fault.getCondition(), str(fault), *places
    return None
