"""The frozen plan: which synopses are built, in which scans, and how they answer each aggregate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

from ..parser.join_graph import Query
from ..sketches.hashing.xi import Family, make_family
from ..sketches.joins.heavy_keys import METHOD as HEAVY_KEYS
from .distinct_count import LEVELS, DistinctCount, parts_of
from .domain_partition import DomainPartition
from .methods import LEVEL, PAIRS, counts_distinct

BYTES_PER_COUNTER = 8


@dataclass(frozen=True, slots=True)
class Attribute:
    """A join attribute of a virtual relation: key expressions, their comparison types, and its join class.

    Two attributes of one class, on whichever relation, use the same xi family.
    """

    keys: tuple[str, ...]
    key_types: tuple[str, ...]
    class_name: str


@dataclass(frozen=True, slots=True)
class Weight:
    """What a tuple adds to a synopsis: 1 without an expression, else its value, or 1 where it is not NULL."""

    expression: str | None = None
    presence: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """An exact message of the join tree: for every key of a neighbour, the total weight of its tuples.

    The receiver, keyed by `receiver`, multiplies its tuples' weights by that of the equal `sender` key of `table`, and
    drops those without one: it then stands for the join of both, without multiplying rows. The sender may itself have
    received `messages` before (eager aggregation; Yannakakis 1981).
    """

    table: str
    filter: str | None
    receiver: Attribute
    sender: Attribute
    weight: Weight
    messages: tuple[Message, ...] = ()

    @property
    def relation(self) -> Message:
        """The message that only counts: what it has in common with messages of other weights."""
        return replace(self, weight=Weight(), messages=tuple(m.relation for m in self.messages))


@dataclass(frozen=True, slots=True)
class Synopsis:
    """One sketch to build: a virtual relation, its join attributes, a weight, a method and a size.

    The virtual relation is a table with a filter and the exact `messages` joined into it. `sparse`: the sketch
    starts as an exact map of keys and turns into counters when that would take more bytes. `group`: a vertex and
    the number of a group of its tuples: it sees the tuples of that group only. `cell`: it sees those tuples only whose
    keys lie in these parts of the domains, one part for each attribute (0 where the class is not partitioned; see
    `Plan.partitions`); empty where none is.

    `rows` and `buckets` are the size: of a ``level`` sketch its levels and the buckets of each; of ``pairs``, a sample
    by the first of two attributes, its values and the pairs that a level gives back. These two methods know of a tuple
    only that it is there: no weight, and of a message no more than who has a partner.

    Equal synopses are one: a self-join reads the same sketch twice.
    """

    table: str
    filter: str | None
    attributes: tuple[Attribute, ...]
    weight: Weight
    method: str
    rows: int
    buckets: int
    sparse: bool = True
    group: tuple[int, int] | None = None
    messages: tuple[Message, ...] = ()
    cell: tuple[int, ...] = ()

    @property
    def distinct(self) -> bool:
        """Whether it tells values apart, and so needs no weights: to count them, or the most frequent of them."""
        return self.method == HEAVY_KEYS or counts_distinct(self.method)


@dataclass(frozen=True, slots=True)
class Scan:
    """One pass over a source table; `synopses` are indices into the plan's synopses."""

    table: str
    synopses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedTerm:
    """A term of an aggregate: the synopsis that stands for each vertex of the residual join tree.

    Where domains are partitioned, a term for each combination of parts: they add up.
    """

    coefficient: float
    synopses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedAggregate:
    """An aggregate and its terms, numerator and presence count (see `Aggregate`), or how its values are counted."""

    function: str
    name: str
    total: tuple[PlannedTerm, ...]
    presence: tuple[PlannedTerm, ...]
    distinct: DistinctCount | None = None


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """An edge of the residual join tree: positions of its vertices, and of its attribute in each.

    `left` and `right` count the vertices that no exact message has replaced, in the order of `Plan.vertices`.
    """

    left: int
    right: int
    left_position: int
    right_position: int
    class_name: str


@dataclass(frozen=True, slots=True)
class ValueDraw:
    """Tuples of a member of a sampled class that are drawn for the value of an expression.

    Those of an absolute value of `least` or more, with the probability that it is of `unit`, at most 1. What each adds
    is estimated by itself. See `sketches.samples.dual_frame`.
    """

    member: int
    expression: str
    least: float
    unit: float


# Where keys are counted, so many times more tuples than any that has been looked at has none, but for the few that are
# heavy.
LONGER = 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The keys of one join class on which a query is evaluated exactly, tables in scan order.

    Attributes
    ----------
    class_name : str
        The class that is sampled.
    members : tuple of (int, int)
        Each residual vertex of the class, and the position of an attribute of it that is of the class.
    edges : tuple of int
        The edges of the residual tree that join on the class.
    rate : float
        Share of the keys that is kept, by their hash; in (0, 1], 1 for all.
    dense : tuple of int
        64-bit keys that are kept in any case, ascending.
    largest_other : tuple of float
        For each member a bound on the absolute weight of any key that is not dense; infinite where none is known.
    largest_product : float
        Bound on what any key that is not dense adds to a COUNT; infinite where none is known.
    row_rates : tuple of float
        For each member the share of its tuples that the same scan draws one by one, so that a heavy key which the hash
        leaves out is met; empty where none are drawn. See `sketches.samples.dual_frame`.
    hits : int
        A key of which so many drawn tuples are, in all tables together, is evaluated like one that is sampled.
    value_draws : tuple of ValueDraw
        Tuples that are drawn for their values, beside those of `row_rates`.
    counted : tuple of float
        For each member, where its files tell before the scan which keys have the most tuples, how many a key may have
        that is sampled by its hash: with more it is kept in any case. Infinite of another member; empty where they tell
        of none.
    """

    class_name: str
    members: tuple[tuple[int, int], ...]
    edges: tuple[int, ...]
    rate: float
    dense: tuple[int, ...] = ()
    largest_other: tuple[float, ...] = ()
    row_rates: tuple[float, ...] = ()
    largest_product: float = math.inf
    hits: int = 4
    value_draws: tuple[ValueDraw, ...] = ()
    counted: tuple[float, ...] = ()

    @property
    def is_guarded(self) -> bool:
        """Whether no heavy key is left to its hash: tuples are drawn one by one, or keys counted."""
        return self.rate < 1.0 and (any(self.row_rates) or any(map(math.isfinite, self.counted)))

    def smaller(self, rate: float) -> Sample:
        """The sample of fewer keys.

        One of all keys leaves none unseen: what bounds those that a smaller one does not see is not known then.
        """
        return replace(
            self, rate=rate, largest_product=math.inf if self.rate == 1.0 else self.largest_product
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What the engine runs for a query. Scans are in the order in which they may run.

    `vertices` are the vertices of the query's join graph that remain beside the exact messages: the residual
    join tree, over which `edges` and terms count. With a `sample` the synopses are not sketches: the residual
    tree is joined exactly on the sampled keys. `partitions` are the parts of the domains of partitioned join
    classes, by name. `family` names the hash family of all sketches, which also says where they are made, see
    `route`.
    """

    query: Query
    seed: int
    synopses: tuple[Synopsis, ...]
    scans: tuple[Scan, ...]
    edges: tuple[PlannedEdge, ...]
    aggregates: tuple[PlannedAggregate, ...]
    vertices: tuple[int, ...]
    sample: Sample | None = None
    partitions: tuple[tuple[str, DomainPartition], ...] = ()
    family: str = "tabulation"

    @property
    def method(self) -> str:
        """The method by which its synopses answer, as the registry names it."""
        if self.sample is not None:
            inside = len(self.sample.members) == len(self.vertices)
            return "key_sample" if inside else "sampled_messages"
        if any(a.distinct for a in self.aggregates):
            return "join_distinct" if any(s.method == PAIRS for s in self.synopses) else "distinct"
        keyed = [s for s in self.synopses if s.attributes]
        if not keyed:
            return "exact" if self.messages else "total"
        for name in ("sample_sketch", "agms", "skimmed", "key_sample", "two_level"):
            if any(s.method == name for s in keyed):
                return name
        if self.query.method is not None and not counts_distinct(self.query.method):
            return self.query.method
        return "convolution" if any(len(s.attributes) > 1 for s in keyed) else "hash"

    @property
    def terms(self) -> list[PlannedTerm]:
        """The terms of all aggregates, those of presence counts among them."""
        return [t for a in self.aggregates for t in (*a.total, *a.presence)]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The exact messages of all synopses, senders before receivers, those of other weights left out."""
        found: dict[Message, None] = {}

        def visit(message: Message) -> None:
            for inner in message.messages:
                visit(inner)
            found.setdefault(message.relation)

        for synopsis in self.synopses:
            for message in synopsis.messages:
                visit(message)
        return tuple(found)


def vertices_of(plan: Plan) -> dict[int, set[int]]:
    """The vertices of the query that each synopsis of a plan stands for."""
    found: dict[int, set[int]] = {}
    for aggregate in plan.aggregates:
        for term in (*aggregate.total, *aggregate.presence):
            for vertex, number in zip(plan.vertices, term.synopses, strict=True):
                found.setdefault(number, set()).add(vertex)
        if aggregate.distinct is not None:
            for part in parts_of(aggregate.distinct):
                found.setdefault(part.synopsis, set()).add(part.vertex)
    return found


def most_bytes(synopsis: Synopsis) -> int:
    """Bytes of a synopsis when it is no exact map any more."""
    if not synopsis.attributes:
        return BYTES_PER_COUNTER
    if synopsis.method == LEVEL:
        # Late, as in the kinds of a catalog: an answer from hash sketches loads no others.
        from ..sketches.distinct.level import LevelSpec

        return BYTES_PER_COUNTER * LevelSpec(any_family(), synopsis.buckets, synopsis.rows).words
    if synopsis.method == PAIRS:
        from ..sketches.distinct.pair_sample import PairSampleSpec

        return PairSampleSpec(any_family(), synopsis.rows, synopsis.buckets, LEVELS).most_bytes
    return BYTES_PER_COUNTER * synopsis.rows * synopsis.buckets


@cache
def any_family() -> Family:
    """A hash family for sizes, which do not depend on it."""
    return make_family()
