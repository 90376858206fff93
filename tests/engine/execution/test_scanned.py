"""What a scan tells: every tuple once, whatever the number of its synopses."""

from support.questions import query
from support.schemas import XYZ

from skimql.engine.execution.scanned import tell
from skimql.engine.observed import Observation
from skimql.engine.synopses import Tally
from skimql.optimizer.choose import choose
from skimql.optimizer.groups import per_group


def told(plan, tuples):
    seen = Observation("scan", "x")
    (scan, *_) = plan.scans
    tell(seen, plan, scan, {i: (10, Tally(tuples)) for i in scan.synopses})
    return scan, seen


def test_synopses_of_several_weights_have_the_same_tuples_and_bytes_of_their_own():
    scan, seen = told(choose(query("COUNT(*), SUM(x.n) FROM x JOIN y ON x.id = y.id", XYZ), 1, 11, 64), 7)
    assert len(scan.synopses) > 1
    assert (seen.rows, seen.bytes_held) == (7, 10 * len(scan.synopses))


def test_synopses_of_groups_share_the_tuples():
    grouped = choose(query("x.n, COUNT(*) FROM x JOIN y ON x.id = y.id GROUP BY x.n", XYZ), 1, 11, 64)
    _, seen = told(per_group(grouped, {0: 3})[0], 5)
    assert seen.rows == 15


def test_relations_with_filters_of_their_own_are_told_apart():
    _, seen = told(
        choose(query("COUNT(*) FROM x JOIN x AS z ON x.id = z.id WHERE x.n > 1", XYZ), 1, 11, 64), 7
    )
    assert (seen.rows, [(i.of, i.rows) for i in seen.inputs]) == (None, [("x where `n` > 1", 7), ("x", 7)])
