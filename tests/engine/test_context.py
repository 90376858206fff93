"""What a statement runs with: nothing starts Spark before it is asked for."""

from skimql import Session
from skimql.engine.spark.own import OwnSpark


def test_a_context_is_of_its_session_and_starts_nothing(monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    session = Session(seed=5)
    context = session.context
    assert (context.tables, context.catalog, context.settings) == (
        session.tables,
        session.catalog,
        session.settings,
    )
    assert not context.spark_runs
    assert context.statistics is session.statistics
    session.sql("SET skimql.seed = 6")
    assert (context.settings.seed, session.context.settings.seed) == (5, 6)
