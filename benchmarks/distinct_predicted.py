"""Predicted against realised errors of distinct counts: level sketches, set expressions, samples of both sides.

    python -m benchmarks.distinct_predicted [--seeds 40] [--quick]

Tables r(a, b) and s(b, c), joined on b, of flat and of Zipf-distributed columns, with hubs among the keys or among the
values, and with b telling a. The predictions see what a pilot sees: each column by itself, its number of pairs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skimql.optimizer.distinct import level_buckets, sample_size
from skimql.optimizer.distinct_count import LEVELS, DistinctCount, JoinedPairs, KeySets, PairsByKey, Part
from skimql.optimizer.messages import JoinClass, JoinTree
from skimql.optimizer.methods import LEVEL, PAIRS
from skimql.optimizer.plan import Attribute, Synopsis, Weight
from skimql.optimizer.prediction.distinct_counts import DistinctPredictor
from skimql.optimizer.prediction.figures import Figures
from skimql.optimizer.prediction.pilot_counts import PILOT_FAMILY, Counts, Pilot, Rates
from skimql.optimizer.prediction.pilot_figures import relation_statistics
from skimql.optimizer.prediction.relation import Relation, complete
from skimql.sketches.distinct.join_distinct import join_distinct, join_distinct_with_key
from skimql.sketches.distinct.level import LevelSketch, LevelSpec
from skimql.sketches.distinct.pair_sample import PairSample, PairSampleSpec
from skimql.sketches.distinct.set_expression import Stream
from skimql.sketches.distinct.set_expression import estimate as set_estimate
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate

Ints = npt.NDArray[np.int64]
Table = tuple[Ints, Ints]  # counted value, join key

HASH_BITS = 40
NORMAL = 0.6827  # share of a normal distribution within a standard deviation
SIZES = (256, 1024, 4096)
SHAPES = ("flat", "zipf values", "zipf keys", "zipf both", "hub keys", "hub values", "key tells value")
ENTRIES = {"": 1, "a": 0, "b": 1}


def tables(shape: str, seed: int = 0) -> tuple[Table, Table]:
    """r as (a, b) and s as (c, b): 20,000 and 12,000 tuples, 3,000 to 4,000 values, half of the keys in common."""
    rng = np.random.default_rng(seed)

    def column(tuples: int, distinct: int, exponent: float) -> Ints:
        weights = np.arange(1, distinct + 1.0) ** -exponent
        return rng.choice(distinct, tuples, p=weights / weights.sum()).astype(np.int64)

    of_values = 0.9 if shape in ("zipf values", "zipf both") else 0.0
    of_keys = 0.9 if shape in ("zipf keys", "zipf both") else 0.0
    a, c = column(20_000, 4_000, of_values), column(12_000, 3_000, of_values)
    b, d = column(20_000, 2_000, of_keys), column(12_000, 2_000, of_keys)
    if of_keys == 0.0:
        d = d + 1_000
    if shape == "hub keys":
        b[rng.random(b.size) < 0.1] = 1_500
        d[rng.random(d.size) < 0.05] = 1_500
    if shape == "hub values":
        a[rng.random(a.size) < 0.2] = 4_000 + rng.integers(0, 5)
        c[rng.random(c.size) < 0.2] = 3_000 + rng.integers(0, 5)
    if shape == "key tells value":
        a = rng.integers(0, 4_000, 2_000)[b]
    return (a, b), (c, d)


def pilot_of(columns: Sequence[Ints], rate: float = 1.0) -> Pilot:
    """What a pilot counts of a table: each column, then their combinations."""
    keys = [*columns]
    if len(columns) > 1:
        keys.append(np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64))
    drawn = np.random.default_rng(0).random(len(columns[0])) < rate
    samples, rows = [], []
    for column in keys:
        values, counts = np.unique(column, return_counts=True)
        small = PILOT_FAMILY.values(values, 1, HASH_BITS)[0] < np.uint64(rate * (1 << HASH_BITS))
        samples.append(Counts(values[small], counts[small]))
        rows.append(samples[-1] if rate == 1.0 else Counts(*np.unique(column[drawn], return_counts=True)))
    return Pilot(Rates(rate, rate), tuple(samples), tuple(rows))


@dataclass(frozen=True)
class Question:
    """One COUNT(DISTINCT) of the two tables, its truth, and how it is read from synopses of a seed."""

    name: str
    count: DistinctCount
    truth: int


A, B, C = (Attribute((name,), ("bigint",), name) for name in "abc")
# Synopses by number: values of r and s, keys of r and s, samples by value and by key.
LAYOUT = (
    (LEVEL, (A,)),
    (LEVEL, (C,)),
    (LEVEL, (B,)),
    (LEVEL, (B,)),
    (PAIRS, (A, B)),
    (PAIRS, (C, B)),
    (PAIRS, (B, A)),
    (PAIRS, (B, C)),
)
OF_TABLE = (0, 1, 0, 1, 0, 1, 0, 1)


def questions(r: Table, s: Table) -> list[Question]:
    """All kinds, with their exact answers."""
    b, d = r[1], s[1]
    common = np.intersect1d(b, d)
    values, keys = np.unique(np.stack(r)[:, np.isin(b, common)], axis=1)
    others, partners = np.unique(np.stack(s)[:, np.isin(d, common)], axis=1)
    degree = np.bincount(np.searchsorted(common, partners), minlength=common.size)
    left = _incidence(values, np.searchsorted(common, keys), common.size)
    right = _incidence(others, np.searchsorted(common, partners), common.size)
    pairs = int(((left @ right.T) > 0).sum())
    sets = {"union": np.union1d(b, d).size, "except": np.setdiff1d(b, d).size, "intersect": common.size}
    found = [
        Question("a", Part(0, 0), np.unique(values).size),
        Question("a, c", JoinedPairs(Part(0, 4), Part(1, 5), Part(0, 0), Part(1, 1)), pairs),
        Question("a, b", PairsByKey(Part(0, 6), Part(1, 7), full=False), keys.size),
        Question(
            "a, b, c",
            PairsByKey(Part(0, 6), Part(1, 7), full=True),
            int(degree[np.searchsorted(common, keys)].sum()),
        ),
    ]
    return found + [Question(f"b {op}", KeySets(op, Part(0, 2), Part(1, 3)), n) for op, n in sets.items()]


def _incidence(rows: Ints, columns: Ints, width: int) -> npt.NDArray[np.float32]:
    names, at = np.unique(rows, return_inverse=True)
    matrix = np.zeros((names.size, width), np.float32)
    matrix[at, columns] = 1.0
    return matrix


def synopses(buckets: int) -> tuple[Synopsis, ...]:
    """The layout at a size."""
    sizes = {LEVEL: (LEVELS, level_buckets(buckets)), PAIRS: sample_size(buckets)}
    return tuple(
        Synopsis("rs"[t], None, attributes, Weight(), method, *sizes[method], sparse=False)
        for (method, attributes), t in zip(LAYOUT, OF_TABLE, strict=True)
    )


def predictor(r: Table, s: Table, rate: float = 1.0) -> DistinctPredictor:
    """From what a pilot sees of both tables; values of r are those that join, as an exact message would leave them."""
    columns = {"ra": r[0], "rb": r[1], "sc": s[0], "sb": s[1]}

    def known(table: str, names: Sequence[str]) -> Relation:
        pilot = pilot_of([columns[table + n] for n in names], rate)
        return complete(relation_statistics(pilot, len(names), None, 0.0), len(names))

    tree = JoinTree(2, (JoinClass("b", (0, 1)),))
    figures = Figures(tree, [known("r", "b"), known("s", "b")])
    return DistinctPredictor(figures, lambda y: known(y.table, [a.keys[0] for a in y.attributes]), 0.95)


def built(r: Table, s: Table, layout: Sequence[Synopsis], seed: int) -> list[LevelSketch | PairSample]:
    """The synopses of a seed; that of a has only what joins."""
    (a, b), (c, d) = r, s
    data = {"a": a[np.isin(b, d)], "b": (b, d), "c": c}
    family, found = make_family(seed=seed), []
    for number, synopsis in enumerate(layout):
        named = synopsis.attributes[0].keys[0]
        if synopsis.method == LEVEL:
            level = LevelSketch(LevelSpec(family.derive(f"level {named}"), synopsis.buckets, LEVELS))
            level.update(data["b"][OF_TABLE[number]] if named == "b" else data[named])
            found.append(level)
        else:
            value, key = (r, s)[OF_TABLE[number]]
            sample = PairSample(PairSampleSpec(family.derive(named), synopsis.rows, synopsis.buckets, LEVELS))
            sample.update(*((key, value) if named == "b" else (value, key)))
            found.append(sample)
    return found


def read(
    count: DistinctCount, made: Sequence[LevelSketch | PairSample], sizes: Sequence[LevelSketch]
) -> Estimate:
    """The estimate of one count."""
    match count:
        case Part():
            return made[count.synopsis].estimate()
        case JoinedPairs():
            one, other = (size.estimate() for size in sizes)
            return join_distinct(made[count.left.synopsis], made[count.right.synopsis], one, other)
        case PairsByKey():
            return join_distinct_with_key(
                made[count.left.synopsis], made[count.right.synopsis], full=count.full
            )
        case KeySets():
            left, right = Stream("l"), Stream("r")
            expression = {"union": left | right, "intersect": left & right, "except": left - right}[
                count.operator
            ]
            return set_estimate(expression, {"l": made[count.left.synopsis], "r": made[count.right.synopsis]})


@dataclass(frozen=True)
class Row:
    """One question at one size: predicted and realised figures, all relative to the truth."""

    shape: str
    name: str
    buckets: int
    value: float
    error: float
    width: float
    realised: float
    half_width: float

    @property
    def ratio(self) -> float:
        """Predicted standard error over the realised error that two thirds of the seeds stay below."""
        return self.error / self.realised if self.realised else (1.0 if self.error == 0.0 else math.inf)

    @property
    def width_holds(self) -> bool:
        """Whether the predicted half-width is within a factor of two, or both say nothing."""
        useless = min(self.width, self.half_width) >= 1.0
        return useless or 0.5 <= (self.width + 1e-9) / (self.half_width + 1e-9) <= 2.0


def rows(shapes: Sequence[str], sizes: Sequence[int], seeds: int, rate: float = 1.0) -> Iterator[Row]:
    """Every question of every shape at every size."""
    for shape in shapes:
        r, s = tables(shape)
        asked, predicts = questions(r, s), predictor(r, s, rate)
        for buckets in sizes:
            layout = synopses(buckets)
            found: list[list[Estimate]] = [[] for _ in asked]
            for seed in range(seeds):
                made = built(r, s, layout, seed)
                sizes_of = []
                for number, values in ((0, r[0]), (1, s[0])):
                    level = LevelSketch(
                        LevelSpec(make_family(seed=seed).derive(f"all {number}"), layout[0].buckets, LEVELS)
                    )
                    level.update(values)
                    sizes_of.append(level)
                for into, question in zip(found, asked, strict=True):
                    into.append(read(question.count, made, sizes_of))
            for question, estimates in zip(asked, found, strict=True):
                told = predicts.error(question.count, layout)
                errors = np.array([e.value for e in estimates]) / question.truth - 1.0
                widths = [max(e.high - e.value, e.value - e.low) / max(e.value, 1e-9) for e in estimates]
                yield Row(
                    shape,
                    question.name,
                    buckets,
                    told.value / question.truth,
                    told.error,
                    told.width,
                    float(np.quantile(np.abs(errors), NORMAL)),
                    float(np.median(widths)),
                )


def main() -> None:
    """Print the table and the share of cases within a factor of two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--rate", type=float, default=1.0, help="of the pilot's samples")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print(
        f"{'shape':16}{'distinct':12}{'buckets':>8}{'value':>8}{'error':>9}{'real':>9}{'ratio':>7}{'width':>9}{'real':>9}"
    )
    found = list(rows(SHAPES, SIZES[:2] if options.quick else SIZES, options.seeds, options.rate))
    for row in found:
        print(
            f"{row.shape:16}{row.name:12}{row.buckets:8,}{row.value:8.2f}{row.error:9.2%}{row.realised:9.2%}{row.ratio:7.2f}"
            f"{row.width:9.2%}{row.half_width:9.2%}"
        )
    for what, good in (
        ("standard error", [0.5 <= row.ratio <= 2.0 for row in found]),
        ("half-width (or both above 100 %)", [row.width_holds for row in found]),
        ("value", [0.5 <= row.value <= 2.0 for row in found]),
    ):
        print(f"{what}: {sum(good)} of {len(good)} within a factor of 2")


if __name__ == "__main__":
    main()
