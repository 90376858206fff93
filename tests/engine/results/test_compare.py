"""The exact values beside an answer's estimates, group by group."""

from types import SimpleNamespace

from support.questions import query
from support.schemas import XYZ

from skimql import Estimate
from skimql.engine.results.answer import Answer
from skimql.engine.results.compare import beside

QUERY = query("n, COUNT(*) AS c FROM x JOIN y ON x.id = y.id GROUP BY n", XYZ)


def estimate(value):
    return Estimate(value, value - 1, value + 1, 0.95, True, "theorem")


def test_rows_are_paired_by_their_groups_and_missing_ones_are_none():
    answer = Answer(
        ("n", "c"),
        ((1, estimate(5.0)), (None, estimate(2.0)), (3, estimate(1.0))),
        plan=SimpleNamespace(query=QUERY),
        aggregated=(False, True),
    )
    exact = Answer(("n", "c"), ((None, 2), (1, 6)), exact=True, seconds={"exact": 0.1})
    assert beside(answer, exact).compared == ((1, 6), (None, 2), None)
