"""The most that a join key has: a bound where statistics count everything, what they know of where they do not."""

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.answer import answer_plan
from skimql.engine.results.estimator import SketchJoin
from skimql.optimizer.candidates.enumerate import choose_method
from skimql.optimizer.choose import choose
from skimql.optimizer.messages import tree_of
from skimql.optimizer.objective import Objective
from skimql.optimizer.prediction.most_of_key import of_plan

KEYS = np.arange(400)
HUBS = np.r_[KEYS, np.repeat(KEYS[::40], 100)]
TABLES = MemoryTables(
    {
        "r": pa.table({"k": np.repeat(KEYS, 4), "g": np.tile(np.arange(4), 400)}),
        "s": pa.table({"k": HUBS, "c": np.arange(HUBS.size)}),
    }
)
SQL = "SELECT APPROXIMATE COUNT(DISTINCT r.g, r.k, s.c) FROM r JOIN s ON r.k = s.k"


@pytest.mark.parametrize(("pilot", "certified"), [(None, True), (800, False)])
def test_the_interval_has_room_for_keys_of_most_triples(pilot, certified):
    """One key in forty has most of them: the largest that a sample meets says nothing of it."""
    backend = MemoryBackend(TABLES, pilot)
    run = MemoryRun.of(SQL, backend, Settings())
    statistics = backend.statistics(run.query)
    figures = choose_method(tree_of(run.query.graph), statistics, Objective(relative_error=0.1)).figures
    truth, missed = run.exact().rows[0][0].value, {True: 0, False: 0}
    for seed in range(8):
        plan = choose(run.query, seed, 11, 64, sparse=False)
        built = backend.build(plan)
        for told in (True, False):
            own = of_plan(figures, plan) if told else plan
            (cell,) = answer_plan(own, SketchJoin(own, built), 0.95).rows[0]
            assert cell.certified == (told and certified)
            missed[told] += not cell.low <= truth <= cell.high
    assert missed[True] == 0
    assert missed[False] > 2, "the planted bug: nothing is known of the keys that a sample does not meet"
    (count,) = (a.distinct for a in of_plan(figures, plan).aggregates)
    assert 404 <= count.most_of_key < 800
    assert count.bounded == certified
