"""Which kept sketches answer a query, and what has to be built beside them.

A kept sketch stands for a vertex of the join graph if it is of the same virtual relation, has the same join
attributes in the same comparison types, and every weight that the query puts on the vertex. Two of them can be joined
if the ends of each edge have one hash family, and all have one size; one that is still an exact map has any. Among all
choices the one is taken that leaves the least to build. Needs neither Spark nor the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations, product

from ...optimizer.choose import choose
from ...optimizer.plan import Plan, Scan, Weight
from ...optimizer.route import TABULATION
from ...parser.join_graph import Edge, Query, Vertex
from ...sketches.hashing.xi import Family, derive_seed, make_family
from ...sketches.joins.convolution import ConvolutionSpec
from ...sketches.joins.sparse import SparseFirstSketch
from ..catalog.file import StoredSketch
from ..catalog.form import Head
from ..sources.environment import Circumstances
from ..synopses import Built

INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint"))
MOST_ATTRIBUTES = 6
# Hash sketches are convolution sketches of one attribute.
JOINED = frozenset(("hash", "convolution", "total"))
# What is joined with the sampled tables of sample x sketch.
BESIDE = frozenset(("key_sample", "two_level", "hash"))
_MOST_STEPS = 20_000  # of the search; a query of that many equal choices is not worth more


@dataclass(frozen=True, slots=True)
class Asked:
    """What the statement itself fixes; None where it leaves the choice."""

    seed: int | None = None
    rows: int | None = None
    buckets: int | None = None
    sparse: bool | None = None
    method: str | None = None

    def allows(self, head: Head) -> bool:
        """Whether a kept sketch is what the statement asks for."""
        return (
            self.seed in (None, head.seed)
            and self.rows in (None, head.rows)
            and self.buckets in (None, head.buckets)
            and self.sparse in (None, head.limit_bytes > 0)
            and (
                self.method in (None, head.method)
                or {self.method, head.method} <= JOINED
                or (self.method == "sample_sketch" and head.method in BESIDE)
            )
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kept sketch for a vertex; entry i of `order` is its attribute for the vertex's i-th edge.

    `families` are those of the plan, one for each attribute, where the sketch is an exact map, which has any.
    """

    head: Head
    order: tuple[int, ...]
    families: tuple[Family, ...] = ()


@dataclass(frozen=True, slots=True)
class Unlike:
    """Two kept sketches that a query would join, and why they are not joined.

    `reason` is "method", "size", "seed" or "family".
    """

    first: Head
    second: Head
    reason: str

    def told(self, head: Head) -> str:
        """One of the two, with what keeps it from the other."""
        what = {
            "method": head.method,
            "size": f"{head.rows} rows x {head.buckets:,} buckets",
            "seed": f"seed {head.seed}",
            "family": " and ".join(str(f) for f in head.families),
        }
        return f"sketch {head.name} of {what[self.reason]}"


@dataclass(frozen=True, slots=True)
class Reuse:
    """A query answered from kept sketches, some or all.

    Attributes
    ----------
    plan : Plan
        Of the query, at the size, seed and classes of the kept sketches.
    kept : mapping of int to (Candidate, Weight)
        By the number of the synopsis in `plan`.
    """

    plan: Plan
    materialized: Mapping[int, tuple[Candidate, Weight]]

    @property
    def heads(self) -> tuple[Head, ...]:
        """The kept sketches that are read, each once."""
        return tuple({c.head.name: c.head for c, _ in self.materialized.values()}.values())

    @property
    def missing(self) -> tuple[int, ...]:
        """Numbers of the synopses that have to be built."""
        return tuple(i for i in range(len(self.plan.synopses)) if i not in self.materialized)

    def plan_of_missing(self) -> Plan:
        """The plan that builds what is missing, in the order of `missing`."""
        numbers = {old: new for new, old in enumerate(self.missing)}
        scans = tuple(
            Scan(s.table, tuple(numbers[i] for i in s.synopses if i in numbers))
            for s in self.plan.scans
            if any(i in numbers for i in s.synopses)
        )
        synopses = tuple(self.plan.synopses[i] for i in self.missing)
        return replace(self.plan, synopses=synopses, scans=scans, edges=(), aggregates=())

    def all_built(self, load: Callable[[str], StoredSketch], new: Sequence[Built]) -> tuple[Built, ...]:
        """One finished sketch for each synopsis of the plan: loaded, or among the newly built of `missing`."""
        found = dict(zip(self.missing, new, strict=True))
        for i, (candidate, weight) in self.materialized.items():
            sketch = load(candidate.head.name)
            built = sketch.built[sketch.head.weights.index(weight)]
            own = self.plan.synopses[i]
            formed = of_form(built.linear, own.rows, own.buckets, candidate.families)
            # What was taken out was added up as well; the first weight counts the tuples.
            updates = sketch.built[0].tally.mass
            found[i] = replace(built, sketch=in_order(formed, candidate.order), updates=updates)
        return tuple(found[i] for i in range(len(found)))


def reuse(
    query: Query,
    heads: Sequence[Head],
    asked: Asked,
    now: Circumstances,
    grouping: Mapping[int, frozenset[str]] | None = None,
) -> Reuse | None:
    """How kept sketches serve a query, or None where none does, nor where those that somebody made do not fit.

    Parameters
    ----------
    query : Query
        One join tree, every `key_types` known.
    heads : sequence of Head
        Of kinds that can be joined with one another.
    asked : Asked
    now : Circumstances
        Of the Spark session that would run the query.
    grouping : mapping of int to frozenset of str, optional
        The vertices that are grouped, and by which expressions: their sketches have a synopsis for each group.
    """
    choices = _choices(query, heads, asked, now, grouping or {})
    if not any(choices):
        return None
    best = _Search(query, choices).best()
    if not best or (len(best) < len(choices) and _unlike(query, choices) is not None):
        return None
    return _planned(query, best)


def unlike(
    query: Query,
    heads: Sequence[Head],
    asked: Asked,
    now: Circumstances,
    grouping: Mapping[int, frozenset[str]] | None = None,
) -> Unlike | None:
    """Two sketches that somebody made and that keep one another from answering; parameters as of `reuse`.

    None where some table has no such sketch, or they differ in their classes: nobody meant them to be joined then, nor
    what `cache` kept, nor the sketches of a workload, whose sizes are for its queries.
    """
    return _unlike(query, _choices(query, heads, asked, now, grouping or {}))


def _choices(
    query: Query,
    heads: Sequence[Head],
    asked: Asked,
    now: Circumstances,
    grouping: Mapping[int, frozenset[str]],
) -> list[list[Candidate]]:
    """The sketches that stand for each vertex, the newest first, of those of one time the most accurate."""
    newest = sorted(heads, key=lambda h: (h.updated, h.exact, h.buckets), reverse=True)
    found = []
    for v in range(len(query.graph.vertices)):
        weights = weights_at(query, v)
        found.append([c for h in newest for c in _candidates(query, v, weights, h, asked, now, grouping)])
    return found


def in_order(
    sketch: SparseFirstSketch[ConvolutionSpec], order: Sequence[int]
) -> SparseFirstSketch[ConvolutionSpec]:
    """The same sketch with its attributes in another order: buckets add and signs multiply in any."""
    if tuple(order) == tuple(range(len(order))):
        return sketch
    spec = replace(sketch.spec, families=tuple(sketch.spec.families[i] for i in order))
    if sketch.exact is None:
        return SparseFirstSketch.from_state(spec, sketch.state(), sketch.limit_bytes)
    turned = SparseFirstSketch(spec, max(sketch.limit_bytes, sketch.exact.nbytes))
    columns = sketch.exact.columns
    turned.update([columns[i] for i in order], sketch.exact.weights)
    return turned


def of_form(
    sketch: SparseFirstSketch[ConvolutionSpec], rows: int, buckets: int, families: tuple[Family, ...]
) -> SparseFirstSketch[ConvolutionSpec]:
    """An exact map in another size and by other hash functions, of which it has any; what has counters is as it is."""
    if sketch.exact is None or not families:
        return sketch
    spec = replace(sketch.spec, families=families, rows=rows, buckets=buckets)
    if spec == sketch.spec:
        return sketch
    formed = SparseFirstSketch(spec, max(sketch.limit_bytes, sketch.exact.nbytes))
    formed.update(sketch.exact.columns, sketch.exact.weights)
    return formed


def has_groups(head: Head, vertex: int, grouping: Mapping[int, frozenset[str]]) -> bool:
    """Whether a sketch tells just the groups apart that a query asks of its vertex: none, or those of GROUP BY."""
    return (None if head.groups is None else frozenset(head.groups.expressions)) == grouping.get(vertex)


def is_of(head: Head, relation: Vertex, vertex: int, grouping: Mapping[int, frozenset[str]]) -> bool:
    """Whether a sketch is of the tuples of a vertex, with its groups."""
    same = head.table.lower() == relation.table.lower() and head.filter == relation.filter
    return same and has_groups(head, vertex, grouping)


def weights_at(query: Query, vertex: int) -> frozenset[Weight]:
    """What the tuples of a vertex weigh in some term of a query."""
    terms = [t for a in query.aggregates for t in (*a.total, *a.presence)]
    factors = [t.factor_of(vertex) for t in terms]
    return frozenset(Weight(f.expression, f.presence) if f else Weight() for f in factors)


def _candidates(
    query: Query,
    vertex: int,
    weights: frozenset[Weight],
    head: Head,
    asked: Asked,
    now: Circumstances,
    grouping: Mapping[int, frozenset[str]],
) -> Iterator[Candidate]:
    relation = query.graph.vertices[vertex]
    edges = [query.graph.edges[e] for e in query.graph.edges_at(vertex)]
    if (
        not is_of(head, relation, vertex, grouping)
        or len(head.attributes) != len(edges)
        or len(edges) > MOST_ATTRIBUTES
        or not now.fit(head)
        or not weights <= set(head.weights)
        or not asked.allows(head)
        or head.cell
    ):
        return
    for order in permutations(range(len(edges))):
        if all(_same_key(head, i, edge, vertex) for i, edge in zip(order, edges, strict=True)):
            yield Candidate(head, order)


def _same_key(head: Head, attribute: int, edge: Edge, vertex: int) -> bool:
    own = head.attributes[attribute]
    return own.keys == edge.keys_of(vertex) and all(
        a == b or (len(own.keys) == 1 and {a, b} <= INTEGERS)
        for a, b in zip(own.key_types, edge.key_types, strict=True)
    )


@dataclass
class _Search:
    """Branch and bound over the vertices: each takes one of its candidates or none."""

    query: Query
    choices: Sequence[Sequence[Candidate]]
    found: dict[int, Candidate] = field(default_factory=dict)
    steps: int = 0

    def best(self) -> dict[int, Candidate]:
        """The choice with the fewest vertices left over."""
        self._extend({}, 0)
        return self.found

    def _extend(self, taken: dict[int, Candidate], vertex: int) -> None:
        self.steps += 1
        left = sum(1 for c in self.choices[vertex:] if c)
        if len(taken) + left <= len(self.found) or self.steps > _MOST_STEPS:
            return
        if vertex == len(self.choices):
            if self._can_be_completed(taken):
                self.found = dict(taken)
            return
        for candidate in self.choices[vertex]:
            if all(
                conflict(self.query, v, other, vertex, candidate) is None for v, other in taken.items()
            ) and _distinct(candidate):
                self._extend({**taken, vertex: candidate}, vertex + 1)
        self._extend(taken, vertex + 1)

    def _can_be_completed(self, taken: Mapping[int, Candidate]) -> bool:
        """Whether no two edges share a family, and what is built now can meet the kept families."""
        if not taken:
            return False
        ends = _edge_ends(self.query, taken)
        families = [f for _, f in ends.values()]
        if len(set(families)) < len(families):
            return False
        seed = _first(taken).seed
        for number, edge in enumerate(self.query.graph.edges):
            if number in ends and not {edge.left, edge.right} <= set(taken):
                name, materialized = ends[number]
                if make_family(TABULATION, derive_seed(seed, name)) != materialized:
                    return False
        return True


def conflict(query: Query, u: int, a: Candidate, v: int, b: Candidate) -> str | None:
    """Why the candidates of two vertices cannot serve one query; None if they can.

    Row r of hash and convolution sketches is of the same functions however many there are: workloads allot them as
    queries need them, and those that all have count. An exact map has any size and functions, and a sample any size.
    """
    linear = {a.head.method, b.head.method} <= JOINED
    if not linear and a.head.method != b.head.method:
        return "method"
    fixed = not (_is_map(a.head) or _is_map(b.head))
    rows = not (linear and (a.head.group or b.head.group))
    sizes = {(c.head.rows if rows else 0, c.head.buckets) for c in (a, b)}
    if fixed and len(sizes) > 1 and not a.head.kind.joint:
        return "size"
    if fixed and a.head.seed != b.head.seed:
        return "seed"
    for number in query.graph.edges_at(u):
        if number in query.graph.edges_at(v):
            mine = a.order[query.graph.edges_at(u).index(number)]
            theirs = b.order[query.graph.edges_at(v).index(number)]
            if a.head.attributes[mine].class_name != b.head.attributes[theirs].class_name:
                return "class"
            if fixed and a.head.families[mine] != b.head.families[theirs]:
                return "family"
    return None


def _is_map(head: Head) -> bool:
    """Whether it still has all keys, as a map that can be hashed in any way."""
    return head.exact and head.method in JOINED


def _first(taken: Mapping[int, Candidate]) -> Head:
    """The sketch of which the others have the seed and the size: one with counters, where there is one."""
    return min((c.head for c in taken.values()), key=_is_map)


def _distinct(candidate: Candidate) -> bool:
    return len(set(candidate.head.families)) == len(candidate.head.families)


def _edge_ends(query: Query, taken: Mapping[int, Candidate]) -> dict[int, tuple[str, Family]]:
    """Join class and family of every edge that a kept sketch decides."""
    ends: dict[int, tuple[str, Family]] = {}
    seed = _first(taken).seed
    # What has counters has its families, and comes last.
    for vertex, candidate in sorted(taken.items(), key=lambda t: not _is_map(t[1].head)):
        for place, number in enumerate(query.graph.edges_at(vertex)):
            attribute = candidate.order[place]
            name, family = candidate.head.attributes[attribute].class_name, candidate.head.families[attribute]
            if _is_map(candidate.head) and candidate.head.seed != seed:
                family = make_family(TABULATION, derive_seed(seed, name))
            ends[number] = (name, family)
    return ends


def _planned(query: Query, taken: Mapping[int, Candidate]) -> Reuse:
    ends = _edge_ends(query, taken)
    names = {number: name for number, (name, _) in ends.items()}
    used = set(names.values())
    edges = []
    for number, edge in enumerate(query.graph.edges):
        name, copy = names.get(number, edge.class_name), 2
        while number not in names and name in used:
            name, copy = f"{edge.class_name}#{copy}", copy + 1
        used.add(name)
        edges.append(replace(edge, class_name=name))
    renamed = replace(query, graph=replace(query.graph, edges=tuple(edges)))
    one = _first(taken)
    sparse = any(c.head.limit_bytes > 0 for c in taken.values())
    plan = choose(renamed, one.seed, one.rows, one.buckets, sparse)
    formed = {v: _formed(query, v, c, ends) for v, c in taken.items()}
    materialized: dict[int, tuple[Candidate, Weight]] = {}
    for planned in plan.aggregates:
        for term, vertex in product((*planned.total, *planned.presence), taken):
            number = term.synopses[vertex]
            materialized.setdefault(number, (formed[vertex], plan.synopses[number].weight))
    return Reuse(plan, materialized)


def _formed(
    query: Query, vertex: int, candidate: Candidate, ends: Mapping[int, tuple[str, Family]]
) -> Candidate:
    """A candidate with the families of the edges, where it is an exact map."""
    if not _is_map(candidate.head):
        return candidate
    by_attribute = {
        candidate.order[place]: ends[number][1] for place, number in enumerate(query.graph.edges_at(vertex))
    }
    return replace(candidate, families=tuple(by_attribute[i] for i in range(len(by_attribute))))


def _unlike(query: Query, choices: Sequence[Sequence[Candidate]]) -> Unlike | None:
    """The first two vertices whose sketches no choice makes fit, for another reason than their classes."""
    made = [[c for c in own if c.head.made_by == "statement" and not c.head.group] for own in choices]
    if not all(made):
        return None
    for u, v in combinations(range(len(choices)), 2):
        pairs = [(a, b, conflict(query, u, a, v, b)) for a, b in product(made[u], made[v])]
        if all(reason not in (None, "class") for _, _, reason in pairs):
            a, b, reason = pairs[0]
            return Unlike(a.head, b.head, reason or "")
    return None
