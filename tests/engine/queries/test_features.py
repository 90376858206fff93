"""What this engine runs beyond aggregates over one join tree."""

from skimql.engine.queries.features import DISTINCT, RUNS
from skimql.parser.join_graph import FEATURES


def test_what_runs_is_part_of_the_language():
    assert set(FEATURES) >= RUNS >= DISTINCT
