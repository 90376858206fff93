"""The plans of a grouped query share all but the grouped vertex's synopses."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.errors import BudgetExceeded
from skimql.optimizer.groups import choose_groups, choose_groups_within
from skimql.optimizer.plan import most_bytes

GROUPED = query("COUNT(*) FROM x JOIN y ON x.id = y.id GROUP BY n", XYZ)


def test_each_group_has_its_own_synopses_of_the_grouped_table():
    plans = choose_groups(GROUPED, 0, 3, 1, 11, 64)
    assert len(plans) == 3
    assert all(p.synopses == plans[0].synopses for p in plans)
    used = [p.aggregates[0].total[0].synopses for p in plans]
    assert len({u[0] for u in used}) == 3
    assert len({u[1] for u in used}) == 1


def test_a_size_is_for_all_groups_together():
    plans = choose_groups_within(GROUPED, 0, 3, 1, 11, 1 << 16)
    assert sum(map(most_bytes, plans[0].synopses)) <= 1 << 16
    with pytest.raises(BudgetExceeded):
        choose_groups_within(GROUPED, 0, 100, 1, 11, 1 << 10)
