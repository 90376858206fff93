"""The shared vocabulary: queries and their join graphs.

`parser` makes these values from SQL text and a schema; `optimizer` plans them; `engine` runs the plan.
Standard library only (and `errors`). Expressions are Spark SQL text over the columns of *one* relation,
unqualified and back-quoted, so that Spark evaluates them as it evaluates the user's own query.

Terms (Dobra et al., SIGMOD 2002, Section 2; EDBT 2004, Section 2): a *vertex* is one occurrence of a
relation with its pushed-down filter (a *virtual relation*); a *join class* is a set of attributes that the
query equates; an *edge* of the join tree joins two vertices on all the classes they share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..errors import UnsupportedQuery
from .expressions import Expression


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of offsets in a statement's text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        assert 0 <= self.start <= self.end, f"not a span: {self.start}..{self.end}"

    def __iter__(self):  # type: ignore[no-untyped-def]  # so that a Span serves as the (start, end) of an error
        return iter((self.start, self.end))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name as the source spells it and its Spark type (``simpleString`` form)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class TableSchema:
    """What the parser knows of a table: the name it is registered under and its columns in order.

    `view` is the SELECT text of a view, whose tables the parser then reads in its place where it can.
    """

    name: str
    columns: tuple[Column, ...]
    view: str | None = None


# Registered tables by name; look-ups ignore case, as Spark does.
Schema = Mapping[str, TableSchema]


@dataclass(frozen=True, slots=True)
class Vertex:
    """A virtual relation: one occurrence of a table in FROM, with the predicates that concern it alone.

    `filter` is a canonical Spark SQL predicate over the table's columns, or None; two vertices with equal
    (table, filter) are the same virtual relation and may share sketches.
    """

    table: str
    alias: str
    filter: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Edge:
    """An equi-join of two vertices on one or several attributes, an edge of the join tree.

    `left_keys[i] = right_keys[i]` for every i, Spark SQL over the vertex's columns; `key_types[i]` is the
    common type in which Spark compares the two, or None where a key is an expression whose type only Spark
    knows. `class_name` names the join class (default: the lower-cased column names of the left keys), made
    unique within the query; seed and family of the xi functions follow from it. `classes` numbers the join
    classes that the edge equates, one per key: edges that share a number join on one and the same value. `zoned`
    says that the session time zone decides which keys are equal (a DATE or text against a TIMESTAMP).
    """

    left: int
    right: int
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    key_types: tuple[str | None, ...]
    class_name: str
    span: Span
    classes: tuple[int, ...] = ()
    zoned: bool = False

    def __post_init__(self) -> None:
        assert len(self.left_keys) == len(self.right_keys) == len(self.key_types) > 0

    def keys_of(self, vertex: int) -> tuple[str, ...]:
        """The key expressions on the side of `vertex`."""
        assert vertex in (self.left, self.right)
        return self.left_keys if vertex == self.left else self.right_keys


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """Vertices and the join tree: acyclic and connected, unless the query was resolved to be looked at only.

    Every pair of vertices has at most one edge; several equalities between them make it composite. A cyclic
    or disconnected graph comes from `resolve` only where it was asked for, and the query's features then
    say so.
    """

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]

    def edges_at(self, vertex: int) -> tuple[int, ...]:
        """Indices of the edges that touch `vertex`, in order."""
        return tuple(i for i, e in enumerate(self.edges) if vertex in (e.left, e.right))

    @property
    def components(self) -> int:
        """Into how many parts without a join between them it falls."""
        part = list(range(len(self.vertices)))
        for edge in self.edges:
            old, new = part[edge.right], part[edge.left]
            part = [new if p == old else p for p in part]
        return len(set(part))

    @property
    def shape(self) -> str:
        """``single``, ``chain``, ``star``, ``tree``, ``cyclic`` or ``disconnected``."""
        if self.components > 1:
            return "disconnected"
        if len(self.edges) >= len(self.vertices):
            return "cyclic"
        degrees = [len(self.edges_at(v)) for v in range(len(self.vertices))]
        if len(degrees) == 1:
            return "single"
        if max(degrees) <= 2:
            return "chain"
        return "star" if max(degrees) == len(self.edges) else "tree"

    @property
    def is_self_join(self) -> bool:
        """Whether a table occurs more than once."""
        return len({v.table for v in self.vertices}) < len(self.vertices)


@dataclass(frozen=True, slots=True)
class Factor:
    """What one vertex contributes to a term: the value of an expression, or 1 where it is not NULL."""

    vertex: int
    expression: str
    presence: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """A product of factors, one per vertex at most; a vertex without a factor counts 1 per tuple.

    The term's total is the sum, over all joined tuples, of the product. A NULL factor contributes 0.
    """

    factors: tuple[Factor, ...] = ()
    coefficient: float = 1.0

    def factor_of(self, vertex: int) -> Factor | None:
        """The factor at `vertex`, or None if the vertex only counts its tuples."""
        return next((f for f in self.factors if f.vertex == vertex), None)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of the query.

    `function` is ``count``, ``sum``, ``avg`` or ``count_distinct``. `total` holds the terms of COUNT or SUM;
    `presence` the terms that count the tuples whose argument is not NULL (the denominator of AVG, and what
    tells SUM's 0 from its NULL). COUNT(*) is one term without factors. COUNT(DISTINCT) has no terms but
    `distinct`, the counted columns, each with the vertex it is on; a tuple with a NULL among them is not
    counted. `types` are their Spark types, once the engine has asked for them. `asked` is false of what the engine
    adds to know whether a group is there.
    """

    function: str
    name: str
    total: tuple[Term, ...]
    presence: tuple[Term, ...]
    span: Span
    distinct: tuple[Factor, ...] = ()
    types: tuple[str, ...] = ()
    asked: bool = True

    def projection(self, graph: JoinGraph) -> str:
        """Which sides of the join a COUNT(DISTINCT) projects on.

        Returns
        -------
        str
            ``single`` for one table without a join; ``one_sided`` if one table has all the columns, join keys
            counting for either side; ``two_sided`` if two tables have them and no join key is among them;
            ``full`` if one is; ``several`` for more tables. As pi_{A,B}, pi_{A,C} and pi_{A,B,C} of
            R(A, B) joined with S(B, C).
        """
        if len(graph.vertices) == 1:
            return "single"
        keys = {(v, k) for e in graph.edges for v in (e.left, e.right) for k in e.keys_of(v)}
        own = {f.vertex for f in self.distinct if (f.vertex, f.expression) not in keys}
        if len(own) <= 1:
            return "one_sided"
        if len(own) > 2:
            return "several"
        return "two_sided" if all((f.vertex, f.expression) not in keys for f in self.distinct) else "full"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What the query asks of its answer; None where it leaves the choice to the session."""

    relative_error: float | None = None
    confidence: float | None = None
    behavior: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A GROUP BY expression: one column or expression of one vertex; `name` is its name in the result."""

    vertex: int
    expression: str
    name: str
    type: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the result: its name, and what it is of aggregates and group columns.

    `type` is its Spark type (``simpleString`` form), or None where only Spark knows it.
    """

    name: str
    expression: Expression
    span: Span
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """One key of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool
    span: Span


@dataclass(frozen=True, slots=True)
class SetLeaf:
    """A set of a set expression: the values of `columns` (Spark SQL) in one vertex; `types` once they are known."""

    vertex: int
    columns: tuple[str, ...]
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetOperation:
    """``union``, ``intersect`` or ``except`` of two sets."""

    operator: str
    left: SetLeaf | SetOperation
    right: SetLeaf | SetOperation


# What a query may use beyond aggregates over one join tree, by the names in `Feature`.
FEATURES = (
    "COUNT(DISTINCT)",
    "set expression",
    "expression over aggregates",
    "bounds in SELECT",
    "GROUP BY",
    "GROUP BY over several tables",
    "HAVING",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
    "cyclic join",
    "cross product",
)


@dataclass(frozen=True, slots=True)
class Feature:
    """Something the query uses beyond aggregates over one join tree, and where it stands.

    `exactly` is what stands there in the text that Spark runs exactly; None: the same.
    """

    name: str
    span: Span
    exactly: str | None = None

    def __post_init__(self) -> None:
        assert self.name in FEATURES, self.name


@dataclass(frozen=True, slots=True)
class Query:
    """A resolved approximate query. `sql` is the statement's text; `select_sql` the SELECT that stands in it.

    `method` and `options` come from USING / OPTIONS, `seed` from SEED; None or empty where not given.
    `warnings` are sentences about comparisons in which Spark itself loses information.

    `items` are the result's columns in order. Where every item is an aggregate, `aggregates` are the items
    in the same order; aggregates inside expressions, HAVING and ORDER BY come behind. `sets` is the set
    expression whose elements a COUNT(DISTINCT) counts: the graph then has its vertices and no edges.
    `empty` is the reason why no tuple can meet the conditions (an exact 0), or the empty text.

    `features` names what goes beyond aggregates over one join tree: whoever runs a query must know every
    one of them, see `Query.refuse_beyond`.
    """

    sql: str
    select_sql: str
    aggregates: tuple[Aggregate, ...]
    graph: JoinGraph
    accuracy: Accuracy = Accuracy()
    method: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    warnings: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    groups: tuple[Group, ...] = ()
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    sets: SetLeaf | SetOperation | None = None
    empty: str = ""
    features: tuple[Feature, ...] = ()

    @property
    def exact_sql(self) -> str:
        """The SELECT as Spark runs it exactly: with the values in the place of the bounds of their intervals."""
        return self.exact_part(0, len(self.select_sql))

    def exact_part(self, start: int, end: int) -> str:
        """What stands in `exact_sql` for a part of `select_sql`."""
        pieces = []
        for feature in sorted(self.features, key=lambda f: f.span.start):
            if feature.exactly is not None and start <= feature.span.start and feature.span.end <= end:
                pieces += [self.select_sql[start : feature.span.start], feature.exactly]
                start = feature.span.end
        return "".join([*pieces, self.select_sql[start:end]])

    @property
    def counts_distinct(self) -> bool:
        """Whether it has a COUNT(DISTINCT)."""
        return any(a.function == "count_distinct" for a in self.aggregates)

    @property
    def leaves_rows_out(self) -> bool:
        """Whether HAVING, LIMIT or OFFSET decide which rows belong to the answer."""
        return self.having is not None or self.limit is not None or self.offset > 0

    def refuse_beyond(self, known: Collection[str]) -> None:
        """Refuse the query if it uses a feature that is not among `known`.

        Raises
        ------
        UnsupportedQuery
            ``SKIMQL_UNSUPPORTED_FEATURE``, at the first such feature.
        """
        for feature in self.features:
            if feature.name not in known:
                raise UnsupportedQuery(
                    f"{feature.name} cannot be estimated yet",
                    "SKIMQL_UNSUPPORTED_FEATURE",
                    self.sql,
                    (feature.span.start, feature.span.end),
                    "EXACT SELECT ...",
                )
