"""A session whose Spark was stopped says so, wherever it is asked."""

from __future__ import annotations

import pytest

from skimql import EnvironmentFault, Session


class Stopped:
    """A Spark session as PySpark leaves it behind."""

    _jsc = None

    @property
    def sparkContext(self):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AssertionError


ASK = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k"


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.sql(ASK),
        lambda s: s.sql("SELECT 1"),
        lambda s: s.sql(f"EXACT {ASK.replace(' APPROXIMATE', '')}"),
        lambda s: s.sql(f"EXPLAIN {ASK}"),
        lambda s: s.sql("ESTIMATE ROWS FOR SELECT * FROM a JOIN b ON a.k = b.k"),
        lambda s: s.sql("CREATE SKETCH x ON a (k)"),
        lambda s: s.sql("CREATE SKETCHES w FOR QUERIES (SELECT COUNT(*) FROM a JOIN b ON a.k = b.k) SIZE 1 MB MINIMIZE MAX ERROR"),
        lambda s: s.table("a", __file__, format="csv"),
        lambda s: s.compare(ASK),
        lambda s: s.plan(ASK),
        lambda s: s.spark,
    ],
)  # fmt: skip
def test_it_is_told_wherever_it_is_met(use):
    session = Session(Stopped())
    with pytest.raises(EnvironmentFault) as fault:
        use(session)
    assert fault.value.code == "SKIMQL_SPARK_STOPPED"
