"""What is known of one table."""

from __future__ import annotations

from skimql.engine.statistics.gather import KnownStatistics
from skimql.engine.statistics.of_table import Gathered, TableStatistics, table_statistics
from skimql.optimizer.plan import Attribute
from skimql.optimizer.prediction.pilot_counts import VirtualRelation
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics


def test_what_queries_have_gathered_is_told_with_its_age():
    known = KnownStatistics()
    attribute = Attribute(("`k`",), ("bigint",), "")
    for gathered_at, distinct in ((50.0, 6.0), (90.0, 7.0)):
        statistics = RelationStatistics(
            10.0, (AttributeStatistics(distinct=distinct),), 20.0, source="pilot", gathered_at=gathered_at
        )
        relation = VirtualRelation("t", "`x` > 1", (attribute,))
        known.put(relation, None, statistics)
    found = table_statistics(None, known, "T", 100.0, spark_runs=False)
    assert found == TableStatistics(20.0, (Gathered("k where x > 1", "pilot", 7.0, 10.0),))
    assert table_statistics(None, None, "t", 100.0, spark_runs=False) == TableStatistics(None)
