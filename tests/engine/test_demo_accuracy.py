"""The demo tables at the default size, sketches alone (`sparse` off): estimates, intervals and their width against exact answers.

Each row of a sketch is an independent draw, so [2nd, 10th] of 11 rows misses the median of the row distribution with
probability 2 * P[Bin(11, 1/2) < 2] = 1.2 %; more than 7 misses of 100 then have probability 2e-5 before the seeds were
fixed, and more than 5 of 40 with probability 1e-5. A doubled estimate, lost signs or other xi functions on the two sides miss in all 100 (`test_planted_bugs.py`).
"""

from __future__ import annotations

import numpy as np
import pytest
from support.seeds import ManySeeds

from skimql import Session, demo_tables

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_users_have_it")]

SEEDS = range(100)
# Seeds of the join of three tables, which takes longest, and of which only the intervals are looked at.
FEWER = 40

PLANES = (
    "SELECT APPROXIMATE COUNT(*), SUM(f.distance), AVG(f.distance) FROM flights f JOIN planes p ON f.tailnum = p.tailnum",
    [284_170, 303_678_304, 303_678_304 / 284_170],
)
WEATHER = (
    "SELECT APPROXIMATE COUNT(*), SUM(f.distance), AVG(f.distance)"
    " FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour",
    [335_220, 348_517_143, 348_517_143 / 335_220],
)
PAIRS = (
    "SELECT APPROXIMATE COUNT(*), SUM(a.distance), AVG(a.distance) FROM flights a JOIN flights b ON a.dest = b.dest",
    [2_970_896_868, 3_152_988_919_680, 3_152_988_919_680 / 2_970_896_868],
)
THREE_WAY = (
    "SELECT APPROXIMATE COUNT(*) FROM flights f JOIN planes p ON f.tailnum = p.tailnum"
    " JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour WHERE w.precip > 0.1",
    [3_447],
)


@pytest.fixture(scope="module")
def flights(spark):
    session = Session(spark, sparse=False)
    for name, path in demo_tables().items():
        session.table(name, path)
    yield session
    for name in demo_tables():
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize(
    ("sql", "right"), [PLANES, WEATHER, PAIRS, THREE_WAY], ids=["planes", "weather", "pairs", "three-way"]
)
def test_intervals_hold_the_truth_and_are_no_wider_than_they_must(flights, sql, right):
    many = ManySeeds(flights, sql, summed=True)
    seeds, least = (SEEDS, 93) if len(right) > 1 else (range(FEWER), 35)
    cells = [many.answer(seed).rows[0] for seed in seeds]
    # What Spark's workers make is what was made here.
    through_spark = flights.sql(f"{sql} SEED {SEEDS[1]}").rows[0]
    ends = [[(c.low, c.value, c.high) for c in row] for row in (through_spark, cells[1])]
    assert ends[0] == ends[1]
    for i, truth in enumerate(right):
        column = [row[i] for row in cells]
        covered = sum(c.low <= truth <= c.high for c in column)
        assert covered >= least, f"{covered} of {len(seeds)} intervals hold {truth}"
        if len(right) == 1:
            # Honest and useless: the answer says so.
            assert sum("wider than the value" in " ".join(c.notes) for c in column) >= len(seeds) // 2
            continue
        errors = np.array([c.value for c in column]) - truth
        assert np.median(np.abs(errors)) <= 0.015 * truth
        width = np.median([(c.high - c.low) / 2 for c in column])
        assert width <= 3.5 * np.sqrt(np.mean(errors**2))
