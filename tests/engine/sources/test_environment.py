"""What a catalog remembers of tables and settings."""

from types import SimpleNamespace

import pytest
from support.kept import kept, remember

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.sources import environment
from skimql.engine.sources.environment import Circumstances, Environment
from skimql.engine.spark.own import OwnSpark


def test_a_sketch_fits_the_settings_it_was_made_under():
    head = kept("s", "t", {"k": [1]}).head
    assert Circumstances(True, "Asia/Tokyo").fit(head)
    assert not Circumstances(False, "UTC").fit(head)
    assert not Circumstances(True, "UTC", (("spark.sql.caseSensitive", "true"),)).fit(head)
    zoned = kept("s", "t", {"k": [1]}, zoned=True).head
    assert not Circumstances(True, "Asia/Tokyo").fit(zoned)


def test_before_spark_runs_the_catalogs_settings_hold(monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    monkeypatch.setattr(Session, "spark", property(lambda self: pytest.fail("Spark was asked for")))
    catalog = remember(Catalog(), kept("s", "t", {"k": [1]}), ansi=False, time_zone="Asia/Tokyo")
    session = Session(catalog=catalog)
    assert session.context.environment.circumstances() == Circumstances(False, "Asia/Tokyo")
    session.context.environment.forget_sketches_of("T")
    assert not catalog.heads()


class Conf:
    """Spark's: what nobody has set has the value that Spark takes for it, not the one that the caller names."""

    def __init__(self, **values):
        self.values = values

    def get(self, name, *default):
        return default[0] if default else self.values[name.rpartition(".")[2]]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_nobody_has_set_is_what_spark_takes_for_it(ansi, monkeypatch):
    """SPARK_ANSI_SQL_MODE changes what Spark takes."""
    spark = SimpleNamespace(conf=Conf(enabled=ansi, timeZone="Asia/Tokyo"))
    monkeypatch.setattr(environment, "meaning_of", lambda spark, told: ())
    tables = SimpleNamespace(once=lambda key, look: look())
    found = Environment(Catalog(), tables, lambda: spark, lambda: spark, {}).circumstances()
    assert found == Circumstances(ansi == "true", "Asia/Tokyo")
