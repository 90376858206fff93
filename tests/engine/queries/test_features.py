"""What this engine runs beyond aggregates over one join tree."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.engine.queries.features import RUNS
from skimql.optimizer.methods import is_grouped
from skimql.parser.join_graph import FEATURES


@pytest.mark.parametrize(
    ("tail", "grouped"), [("", False), (" GROUP BY n", True), (" HAVING COUNT(*) > 1", True)]
)
def test_a_query_is_grouped_by_its_clauses(tail, grouped):
    assert is_grouped(query("COUNT(*) FROM x JOIN y ON x.id = y.id" + tail, XYZ)) == grouped


def test_what_runs_is_part_of_the_language():
    assert set(FEATURES) >= RUNS
