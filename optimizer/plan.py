"""The frozen plan: which synopses are built, in which scans, and how they answer each aggregate."""

from __future__ import annotations

from dataclasses import dataclass

from ..parser.join_graph import Query

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
class Synopsis:
    """One sketch to build: a virtual relation, its join attributes, a weight, a method and a size.

    `sparse`: it starts as an exact map of keys and turns into counters when that would take more bytes. `group`: it
    sees the tuples of the group of that number only.

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
    group: int | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """One pass over a source table; `synopses` are indices into the plan's synopses."""

    table: str
    synopses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedTerm:
    """A term of an aggregate: the synopsis that stands for each vertex of the join graph."""

    coefficient: float
    synopses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedAggregate:
    """An aggregate and its terms, numerator and presence count (see `Aggregate`)."""

    function: str
    name: str
    total: tuple[PlannedTerm, ...]
    presence: tuple[PlannedTerm, ...]


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """An edge of the join tree: vertices `left`, `right` and the position of its attribute in each."""

    left: int
    right: int
    left_position: int
    right_position: int
    class_name: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What the engine runs for a query. Scans are in the order in which they may run."""

    query: Query
    seed: int
    synopses: tuple[Synopsis, ...]
    scans: tuple[Scan, ...]
    edges: tuple[PlannedEdge, ...]
    aggregates: tuple[PlannedAggregate, ...]
