"""A session of ours for every one of Spark's."""

from __future__ import annotations

from skimql import Settings
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.extension.sessions import MOST_SESSIONS, Sessions


def test_settings_of_sparks_session_are_those_of_its_statements(spark):
    sessions = Sessions(spark, Catalog(), Settings(seed=7))
    java = spark._jsparkSession
    try:
        spark.sql("SET skimql.confidence = '90%'")
        asked = sessions.asked(java.sessionUUID(), java, (), False)
        assert (asked.settings.seed, asked.settings.confidence, asked.settings.bounds) == (7, 0.9, False)
    finally:
        spark.sql("RESET skimql.confidence")
    assert sessions.asked(java.sessionUUID(), java, (), True).settings == Settings(seed=7)
    assert asked.tables is sessions.of(java.sessionUUID(), java).tables


def test_only_so_many_are_kept(spark):
    sessions = Sessions(spark, Catalog(), Settings())
    for number in range(MOST_SESSIONS + 5):
        sessions.of(str(number), spark._jsparkSession)
    assert len(sessions._known) == MOST_SESSIONS
