"""Plans at the size that a session's settings ask for."""

from dataclasses import replace

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql import BudgetExceeded
from skimql.engine.queries.sizing import buckets_of, chosen
from skimql.engine.settings import Settings
from skimql.optimizer.plan import most_bytes

QUERY = query("COUNT(*) FROM x JOIN y ON x.id = y.id", XYZ)


def test_sketches_have_the_sessions_size():
    plan = chosen(QUERY, Settings(rows=7, buckets=64))
    assert {(s.rows, s.buckets) for s in plan.synopses} == {(7, 64)}
    assert sum(map(most_bytes, chosen(QUERY, Settings(size_bytes=1 << 16)).synopses)) <= 1 << 16


def test_what_may_take_more_than_max_bytes_is_refused():
    with pytest.raises(BudgetExceeded) as fault:
        chosen(QUERY, Settings(max_bytes=1 << 12))
    assert fault.value.code == "SKIMQL_MAX_BYTES"


def test_distinct_values_take_more_buckets_for_a_smaller_error():
    counted = query("COUNT(DISTINCT m) FROM y", XYZ)
    sizes = [buckets_of(counted, Settings(error=e)) for e in (0.1, 0.01)]
    assert sizes[0] < sizes[1]
    assert buckets_of(replace(QUERY, method="agms"), Settings()) < buckets_of(QUERY, Settings())
