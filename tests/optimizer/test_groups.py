"""The plans of a grouped query share all but the grouped vertex's synopses."""

from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.choose import choose
from skimql.optimizer.groups import per_group

GROUPED = query("COUNT(*) FROM x JOIN y ON x.id = y.id GROUP BY n", XYZ)


SEVERAL = query("COUNT(*) FROM x JOIN y ON x.id = y.id JOIN z ON y.id = z.id GROUP BY x.n, z.w", XYZ)


def test_each_group_has_its_own_synopses_of_the_grouped_table():
    plans = per_group(choose(GROUPED, 1, 11, 64), {0: 3})
    assert len(plans) == 3
    assert all(p.synopses == plans[0].synopses for p in plans)
    used = [p.aggregates[0].total[0].synopses for p in plans]
    assert len({u[0] for u in used}) == 3
    assert len({u[1] for u in used}) == 1


def test_groups_of_several_tables_are_one_of_each():
    plans = per_group(choose(SEVERAL, 1, 11, 64), {0: 3, 2: 2})
    used = [p.aggregates[0].total[0].synopses for p in plans]
    assert len(plans) == len(set(used)) == 6
    assert [len({u[v] for u in used}) for v in range(3)] == [3, 1, 2]
    assert {s.group for s in plans[0].synopses} == {
        None,
        *((0, n) for n in range(3)),
        *((2, n) for n in range(2)),
    }
