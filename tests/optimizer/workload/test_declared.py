"""From a workload's shared graph to plans over common synopses."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.plan import most_bytes
from skimql.optimizer.workload.declared import plan_declared

QUERIES = [query(f"COUNT(*) FROM x JOIN {t} ON x.id = {t}.id", XYZ) for t in "yz"]


def test_queries_share_the_table_that_they_have_in_common():
    found = plan_declared("w", QUERIES, 1, 1 << 18, "average")
    assert len(found.plans) == 2
    assert found.plans[0].synopses == found.plans[1].synopses
    assert sum(map(most_bytes, found.plans[0].synopses)) <= 1 << 18
    assert [s.table for s in found.plans[0].scans] == ["x", "y", "z"]


def test_too_little_space_is_refused():
    with pytest.raises(ValueError):
        plan_declared("w", QUERIES, 1, 8, "average")
