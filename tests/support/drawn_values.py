"""Tables and statements with draws for values: NULLs, both signs, a key that is found surely, and what hangs behind."""

import numpy as np
import pyarrow as pa

from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.expressions import Evaluator
from skimql.engine.results.rows import Estimated
from skimql.optimizer.candidates.first_sample import ClassSample
from skimql.optimizer.choose import choose
from skimql.optimizer.plan import ValueDraw

RNG = np.random.default_rng(3)
N, KEYS = 3000, 600
TABLES = {
    "r": {
        "k": pa.array(RNG.integers(0, KEYS, N), mask=RNG.random(N) < 0.05),
        "x": pa.array(RNG.integers(1, 1000, N), mask=RNG.random(N) < 0.1),
        "g": RNG.integers(0, 3, N),
        "l": RNG.integers(0, 50, N),
    },
    # Key 5 has so many tuples that those that are looked at find it surely, whatever r has of it.
    "s": {
        "k": np.r_[np.arange(KEYS), np.full(900, 5)],
        "y": RNG.integers(-99, 100, KEYS + 900),
        "h": RNG.integers(0, 2, KEYS + 900),
    },
    "c": {"l": np.r_[np.arange(40), np.arange(9)], "z": RNG.integers(1, 9, 49)},
}
# The same with decimals, of which integers are made.
DECIMALS = TABLES["r"]["x"].cast(pa.decimal128(20, 0)).cast(pa.decimal128(12, 2))
TABLES["q"] = {**TABLES["r"], "x": DECIMALS}
SIZES = {n: float(pa.table(c).num_rows) for n, c in TABLES.items()}
MEMORY = MemoryBackend(MemoryTables({n: pa.table(c) for n, c in TABLES.items()}))
TWO = "FROM r JOIN s ON r.k = s.k"
X, Y = ValueDraw(0, "`x`", 0.5, 1.0), ValueDraw(1, "`y`", 0.5, 1.0)


def estimates(sql, draws, seed, rate=0.05, backend=MEMORY):
    run = MemoryRun.of(f"SELECT APPROXIMATE {sql}", MEMORY)
    number = 3 if "r t ON s" in sql else 2
    rates = (0.1, 0.1, 0.1)[:number]
    sample = ClassSample(0, rate, row_rates=rates, hits=4, value_draws=draws)
    listed = backend.groups(run.query, 100) if run.query.groups else None
    plan = choose(run.query, seed, 0, 0, sample=sample)
    expected = {n: SIZES[v.table] for n, v in enumerate(run.query.graph.vertices)}
    found = backend.sample(plan, 1 << 28, expected, listed)
    values = {n: () if listed is None else listed.values(n) for n in found}
    evaluators = {n: Evaluator(plan, joined, 0.95, values[n]) for n, joined in found.items()}
    groups = len(run.query.groups)
    answer = Estimated(run.query, evaluators, listed=False).answer()
    return {row[:groups]: row[groups:] for row in answer.rows}, run
