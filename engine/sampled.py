"""A query on a sample of the keys of one join class, evaluated exactly, table by table.

Spark filters the tables of the class by the hash of the key before anything else, and groups what is left by the keys
to which more tables are joined. Each table beyond is then scanned once, filtered by the keys that got that far. The
error depends on the sampled class alone, whatever the number of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..errors import BudgetExceeded
from ..optimizer.plan import Plan, PlannedTerm, Sample
from ..sketches.interval import Estimate
from ..sketches.known_keys import JoinTerms, KnownKeys, combined, join_terms
from ..sketches.sample_join import estimate_ratio, estimate_total, is_complete
from ..sketches.xi import XxHash64, derive_seed
from .jobs import ProgressListener, run_job
from .keys import key_column
from .messages import Messages
from .tables import Frames
from .weights import WeightColumn, product, total, weight_column

HASH_BITS = 40
DEFAULT_LIMIT_BYTES = 256 << 20

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SampleJoin:
    """The contributions of the sampled keys to every term of a plan.

    Attributes
    ----------
    terms : tuple of tuples of int
        The synopses of each term, by which it is known.
    contributions : JoinTerms
        One column for each of them.
    nbytes : int
        In-memory bytes of all messages, sampled and exact.
    """

    terms: tuple[tuple[int, ...], ...]
    contributions: JoinTerms
    nbytes: int

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`; what is known of unseen keys bounds it in any case."""
        return estimate_total(combined(self.contributions, [self._coefficients(terms)]), confidence)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        columns = [self._coefficients(top), self._coefficients(bottom)]
        return estimate_ratio(combined(self.contributions, columns), confidence)

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | None:
        """See `Joined.known`."""
        columns = combined(self.contributions, [self._coefficients(terms)])
        return columns.total() if is_complete(columns) else None

    def _coefficients(self, terms: Sequence[PlannedTerm]) -> Floats:
        coefficients = np.zeros(len(self.terms))
        for term in terms:
            coefficients[self.terms.index(term.synopses)] += term.coefficient
        return coefficients


def sample_family(seed: int, class_name: str) -> XxHash64:
    """The hash that decides which keys of a class are sampled: the same in Spark and in numpy."""
    return XxHash64(derive_seed(seed, f"sample {class_name}"))


def run_sample(
    spark: SparkSession,
    plan: Plan,
    tables: Frames,
    listener: ProgressListener | None = None,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> SampleJoin:
    """Evaluate a plan with a sample: one scan for each vertex of its residual tree.

    Raises
    ------
    BudgetExceeded
        If a message takes more than `limit_bytes`.
    UnsupportedQuery
        If Spark refuses an expression.
    """
    assert plan.sample is not None, "a plan without a sample is built from sketches"
    return _Run(spark, plan, plan.sample, tables, listener, limit_bytes).joined()


@dataclass(frozen=True, slots=True)
class _Grouped:
    """Total weights by key: keys int64 (n,), ascending and distinct; weights float64 (terms, n)."""

    keys: Ints
    weights: Floats


class _Run:
    """One evaluation; `nbytes` grows with every message that arrives."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        sample: Sample,
        tables: Frames,
        listener: ProgressListener | None,
        limit_bytes: int,
    ) -> None:
        self.spark, self.plan, self.sample, self.tables = spark, plan, sample, tables
        self.listener, self.limit = listener, limit_bytes
        self.family = sample_family(plan.seed, sample.class_name)
        self.messages = Messages(spark, plan, tables, listener)
        planned = (t for a in plan.aggregates for t in (*a.total, *a.presence))
        self.terms = tuple(dict.fromkeys(t.synopses for t in planned))
        self.nbytes = 0
        self._scanned: dict[object, tuple[Ints, Floats]] = {}

    def joined(self) -> SampleJoin:
        known = [self._known(n, v, position) for n, (v, position) in enumerate(self.sample.members)]
        terms = join_terms(known)
        return SampleJoin(self.terms, terms, self.nbytes + self.messages.nbytes)

    def _known(self, number: int, vertex: int, position: int) -> KnownKeys:
        """What is known of one table of the class, with everything that hangs from it."""
        grouped = self._grouped(vertex, position, self._sampled, self.sample.edges)
        certain = np.full(len(grouped.keys), self.sample.rate == 1.0)
        certain |= np.isin(grouped.keys, np.array(self.sample.dense, np.int64))
        hashes = self.family.values(grouped.keys, 1, HASH_BITS)[0]
        return KnownKeys(
            grouped.keys,
            grouped.weights,
            certain,
            self.sample.rate,
            self._unseen(number, vertex),
            hashes / (1 << HASH_BITS),
            np.full(len(self.terms), np.nan),
        )

    def _unseen(self, number: int, vertex: int) -> Floats:
        """Bounds on the weight of a key that is not certain: known for counts where nothing else hangs on it."""
        bounds = np.tile([-np.inf, np.inf], (len(self.terms), 1))
        alone = all(e in self.sample.edges for e, _, _ in self._edges(vertex))
        for column, term in enumerate(self.terms):
            synopsis = self.plan.synopses[term[vertex]]
            counts = synopsis.weight.expression is None or synopsis.weight.presence
            if counts and not synopsis.messages:
                most = self.sample.largest_other[number] if alone and self.sample.largest_other else np.inf
                bounds[column] = 0.0, most
        return bounds

    def _sampled(self, frame: DataFrame) -> DataFrame:
        if self.sample.rate == 1.0:
            return frame
        below = max(1, round(self.sample.rate * (1 << HASH_BITS)))
        hashed = f"xxhash64({self.family.word_seeds(1)[0]}L, k0) & {(1 << HASH_BITS) - 1}L"
        kept = f"({hashed}) < {below}L"
        if self.sample.dense:
            kept += f" OR k0 IN ({', '.join(f'{k}L' for k in self.sample.dense)})"
        return frame.where(kept)

    def _among(self, keys: Ints) -> Callable[[DataFrame], DataFrame]:
        """Keeps the tuples whose key is one of these."""

        def kept(frame: DataFrame) -> DataFrame:
            wanted = self.spark.createDataFrame(pa.table({"wanted": keys}))
            return frame.join(F.broadcast(wanted), F.col("k0") == F.col("wanted"), "left_semi")

        return kept

    def _grouped(
        self,
        vertex: int,
        position: int,
        kept: Callable[[DataFrame], DataFrame],
        above: Sequence[int],
    ) -> _Grouped:
        """The subtree of a vertex, away from the edges `above`, as weights by one of its attributes."""
        below = [(e, own, other) for e, own, other in self._edges(vertex) if e not in above]
        positions = (position, *(own for _, own, _ in below))
        # A self-join reads one sample twice.
        asked = (positions, tuple(t[vertex] for t in self.terms), kept)
        if asked not in self._scanned:
            self._scanned[asked] = self._scan(vertex, positions, kept)
        rows, weights = self._scanned[asked]
        for column, (edge, _, (other, at)) in enumerate(below, 1):
            wanted, where = np.unique(rows[column], return_inverse=True)
            sent = self._grouped(other, at, self._among(wanted), [edge])
            found = np.isin(wanted, sent.keys)
            every = np.zeros((len(self.terms), len(wanted)))
            every[:, found] = sent.weights[:, np.searchsorted(sent.keys, wanted[found])]
            weights = (weights * every[:, where])[:, found[where]]
            rows = rows[:, found[where]]
        keys, which = np.unique(rows[0], return_inverse=True)
        sums = [np.bincount(which, w, len(keys)) for w in weights]
        return _Grouped(keys, np.array(sums, np.float64).reshape(len(self.terms), len(keys)))

    def _scan(
        self, vertex: int, positions: Sequence[int], kept: Callable[[DataFrame], DataFrame]
    ) -> tuple[Ints, Floats]:
        """Distinct keys at these positions, int64 (positions, n), and their weights, float64 (terms, n)."""
        own = [self.plan.synopses[t[vertex]] for t in self.terms]
        relation = own[0]
        frame = self.tables.frame(relation.table)
        if relation.filter is not None:
            frame = frame.where(relation.filter)
        frame, _ = self.messages.joined(frame, [s.messages for s in own])
        weights = {
            s: product(
                [weight_column(frame, s.weight, self.plan.query.sql), *self.messages.weights(s.messages)]
            )
            for s in dict.fromkeys(own)
        }
        keys = [key_column(relation.attributes[p]).alias(f"k{n}") for n, p in enumerate(positions)]
        named = {
            s: WeightColumn(None if w.column is None else F.col(f"w{n}"), w.dtype, w.scale)
            for n, (s, w) in enumerate(weights.items())
        }
        columns = [w.column.alias(f"w{n}") for n, w in enumerate(weights.values()) if w.column is not None]
        frame = kept(frame.select(*keys, *columns))
        names = [f"k{n}" for n in range(len(positions))]
        for name in names:
            frame = frame.where(F.col(name).isNotNull())
        sums = [total(w).alias(f"s{n}") for n, w in enumerate(named.values())]
        most = self.limit // (8 * (len(names) + len(sums)))
        grouped = frame.groupBy(*names).agg(*sums).limit(most + 1)
        rows = run_job(self.spark, f"sample of {relation.table}", grouped.toArrow, self.listener)
        if rows.num_rows > most:
            raise BudgetExceeded(
                f"the sampled keys of {relation.table} take more than {self.limit:,} bytes",
                sql=self.plan.query.sql,
                hint="a smaller SIZE, or a larger skimql.max_bytes",
            )
        self.nbytes += rows.nbytes
        at = {s: n for n, s in enumerate(named)}
        arrays = [np.asarray(rows[f"s{n}"]) / w.scale for n, w in enumerate(named.values())]
        found = np.array([arrays[at[s]] for s in own], np.float64).reshape(len(own), rows.num_rows)
        return np.array([np.asarray(rows[name]) for name in names], np.int64).reshape(len(names), -1), found

    def _edges(self, vertex: int) -> list[tuple[int, int, tuple[int, int]]]:
        """The edges at a vertex: number, own position, and vertex and position at the other end."""
        found = []
        for number, e in enumerate(self.plan.edges):
            if e.left == vertex:
                found.append((number, e.left_position, (e.right, e.right_position)))
            elif e.right == vertex:
                found.append((number, e.right_position, (e.left, e.left_position)))
        return found
