"""A SELECT that Spark runs as it stands on a sample of the keys of one join class: what it asks, and its text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from ..errors import UnknownName, UnsupportedQuery
from .aggregates import default_name
from .bound import fragment_of
from .contributions import Contributions, sums_of
from .extremes import EXTREMES, Extreme, columns_as_a_whole
from .fragment import quote_name
from .grouping_sets import has_sets, nodes_of, sets_of
from .items import Results
from .join_graph import Aggregate, Group, JoinGraph, Query, Schema, Span
from .joined import Join
from .key_classes import CODE, Ordered, decomposed, in_no_order
from .keys import Decomposition, Role
from .lexing import identifiers
from .measures import MeasureReader, measure_of
from .narrowing import Narrowing, meaning, narrowing
from .qualified import by_last_names
from .result_values import ResultValues
from .scope import EXACT, Scope
from .select import Source, parse_select
from .statement import ApproximateSelect, too_deep

_CLAUSES = {
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "windows": "WINDOW",
    "distinct": "SELECT DISTINCT",
}


_NOWHERE = Span(0, 0)
_NO_CLASS = Decomposition("", "", (), "", frozenset(), ())

_NOTHING_KNOWN = Narrowing()

# The column that tells of which set of columns a group is.
SET = "__set"


@dataclass(frozen=True, slots=True)
class SampledQuery(Query):
    """A query that is run on a sample of keys, over one of the classes that it decomposes over.

    Its graph has no vertices: what its tables are is in `ways`.

    Attributes
    ----------
    text : str
        The SELECT, offsets as in `sql`.
    head, body : Span
        What stands before its SELECT, and its FROM and WHERE.
    group_texts : tuple of str
    sets_of_groups : tuple of tuple of int
        The sets of groups of ROLLUP, CUBE and GROUPING SETS; empty where all are grouped by.
    ways : tuple of Decomposition
    ones : tuple of str
        The measures to which no key adds more than 1.
    extremes : tuple of (str, Extreme)
        The measures that files are to tell.
    narrowing : Narrowing
        What is known of the number of its rows.
    contributions : Contributions
        What bounds how much a key adds.
    """

    text: str = ""
    head: Span = _NOWHERE
    body: Span = _NOWHERE
    group_texts: tuple[str, ...] = ()
    sets_of_groups: tuple[tuple[int, ...], ...] = ()
    ways: tuple[Decomposition, ...] = ()
    ones: tuple[str, ...] = ()
    extremes: tuple[tuple[str, Extreme], ...] = ()
    narrowing: Narrowing = _NOTHING_KNOWN
    contributions: Contributions | None = field(default=None, compare=False, repr=False)

    @property
    def leaves_rows_out(self) -> bool:
        """Whether rows may be marked as uncertain: groups too, of which too little was met."""
        return bool(self.groups or self.having is not None or self.limit is not None or self.offset)

    @property
    def is_in_files(self) -> bool:
        """Whether files are to tell all that is asked."""
        asked = [a for a in self.aggregates if a.asked]
        known = {measure for measure, _ in self.extremes}
        return all(a.function in EXTREMES and measure_of(a.total[0]) in known for a in asked)

    @property
    def measures(self) -> tuple[str, ...]:
        """What is computed for every key, as SQL."""
        terms = (t for a in self.aggregates for t in (*a.total, *a.presence))
        return tuple(dict.fromkeys(map(measure_of, terms)))

    def text_of(self, aggregate: Aggregate) -> str:
        """An aggregate of the query as SQL."""
        if not aggregate.asked or aggregate.function == "count":
            return measure_of(aggregate.total[0])
        return self.text[aggregate.span.start : aggregate.span.end]

    def whole(self, columns: Sequence[str]) -> str:
        """The SELECT of `columns` by groups, on all tuples."""
        return self.by_key(_NO_CLASS, lambda _: "", columns, ())

    def by_key(
        self, way: Decomposition, kept: Callable[[Role], str], columns: Sequence[str], keys: Sequence[str]
    ) -> str:
        """The SELECT of `columns` by groups and keys, on the tuples that a condition on each role keeps.

        Parameters
        ----------
        way : Decomposition
        kept : callable
            Gives the condition on the table of a role, as SQL.
        columns : sequence of str
        keys : sequence of str
            What is grouped by behind the groups.
        """
        edits = [(at, at, text) for at, text in way.added]
        for role in way.roles:
            table = self.text[role.place.start : role.place.end]
            named = f" AS {quote_name(role.alias)}" if role.alias is not None else ""
            filtered = f"(SELECT * FROM {table} WHERE {kept(role)}){named}"
            edits.append((role.place.start, role.place.end, filtered))
        grouped = ", ".join((*self.group_texts, *keys))
        groups = [f"{text} AS {quote_name(f'__g{n}')}" for n, text in enumerate(self.group_texts)]
        if self.sets_of_groups:
            sets = (", ".join((*(self.group_texts[n] for n in s), *keys)) for s in self.sets_of_groups)
            grouped = f"GROUPING SETS ({', '.join(f'({s})' for s in sets)})"
            groups.append(f"grouping_id() AS {quote_name(SET)}")
        head, body = (_edited(self.text, span, edits).strip() for span in (self.head, self.body))
        lines = [
            head,
            f"SELECT {', '.join((*groups, *columns))}",
            body,
            f"GROUP BY {grouped}" if grouped else "",
        ]
        return "\n".join(line for line in lines if line)


def _edited(text: str, span: Span, edits: Sequence[tuple[int, int, str]]) -> str:
    pieces, place = [], span.start
    for start, end, new in sorted(edits):
        if not span.start <= start <= span.end:
            continue
        pieces += [text[place:start], new]
        place = end
    return "".join((*pieces, text[place : span.end]))


def resolve_sampled(
    statement: ApproximateSelect, schema: Schema, ordered: Ordered = in_no_order
) -> SampledQuery:
    """The query of a SELECT that is to be run on a sample of keys.

    Parameters
    ----------
    statement : ApproximateSelect
    schema : Schema
    ordered : callable
        Gives the columns that a table's tuples are in the order of.

    Raises
    ------
    ParseError
        If sqlglot cannot read the SELECT.
    UnknownName
        For a table or column that is not there, or one that several tables have.
    UnsupportedQuery
        ``SKIMQL_NOT_DECOMPOSED`` if it is not the sum of what each key of a class adds, and as `resolve` for what
        is asked of its result.
    """
    try:
        return _resolved(statement, schema, ordered)
    except RecursionError as error:
        raise too_deep(statement.sql) from error


def _resolved(statement: ApproximateSelect, schema: Schema, ordered: Ordered) -> SampledQuery:
    written = Scope(parse_select(statement.select_sql, statement.sql), statement.sql, schema)
    source = by_last_names(written, CODE)
    outside = Scope(source, statement.sql, schema)
    select = source.tree
    if isinstance(select, exp.Select):
        for key, name in _CLAUSES.items():
            if select.args.get(key):
                message = f"{name} beside aggregates cannot be estimated"
                raise outside.fault(message, "SKIMQL_UNSUPPORTED_CLAUSE", select, EXACT)
    found = decomposed(outside, ordered)
    assert isinstance(select, exp.Select), "what decomposes is one"
    scope = found.reader.scopes[id(found.top)]
    results = _SampledResults(select, scope, Join(schema))
    results.reader.whole = columns_as_a_whole(found.top)
    try:
        results.read()
    except UnknownName as fault:
        if not found.reader.open or fault.code == "SKIMQL_AMBIGUOUS_NAME":
            raise
        message = f"{fault.message}, as far as is known without Spark: a table function or PIVOT has more"
        raise UnsupportedQuery(message, CODE, statement.sql, fault.span, EXACT) from fault
    ways = found.ways
    for refs, span in results.reader.distinct:
        ways = tuple(w for w in ways if refs & w.keys)
        if not ways:
            columns = " and ".join(dict.fromkeys(w.name for w in found.ways))
            message = f"COUNT(DISTINCT x) adds up over keys only where x has the key in it: {columns}"
            raise outside.fault(message, CODE, span, EXACT)
    return SampledQuery(
        statement.sql,
        statement.select_sql,
        tuple(results.values.aggregates),
        JoinGraph((), ()),
        statement.accuracy,
        statement.method,
        statement.options,
        statement.seed,
        (),
        tuple(results.values.items),
        tuple(results.values.groups),
        results.having,
        tuple(results.order),
        results.limit,
        results.offset,
        features=tuple(results.values.features),
        text=source.sql,
        head=Span(0, _select_start(source)),
        body=_body(source, select),
        group_texts=tuple(results.group_texts),
        sets_of_groups=tuple(results.sets),
        ways=ways,
        ones=tuple(results.reader.ones),
        extremes=tuple(results.reader.extremes.items()),
        narrowing=narrowing(
            found.top,
            found.reader.scopes,
            results.values.group_fragments,
            identifiers(statement.select_sql),
            results.reader.conditions,
        ),
        contributions=Contributions(
            found.top,
            found.reader.types,
            sums_of(found.top, results.reader.summed, meaning(found.top, found.reader.scopes)),
        ),
    )


class _SampledResults(Results):
    """Results of what Spark computes by key: groups may read several tables, aggregates are measures."""

    def __post_init__(self) -> None:
        self.reader = MeasureReader()
        self.values = ResultValues(self.scope, self.reader)
        self.group_texts: list[str] = []
        self.sets: list[tuple[int, ...]] = []
        self._placed: dict[int, int] = {}

    def _read_groups(self) -> None:
        super()._read_groups()
        group = self.select.args.get("group")
        if group is None or not has_sets(group):
            return
        self.sets = [tuple(dict.fromkeys(self._placed[id(n)] for n in s)) for s in sets_of(group)]
        if len({frozenset(s) for s in self.sets}) < len(self.sets):
            message = "a set of columns that stands there twice gives its groups twice"
            raise self.scope.fault(message, "SKIMQL_UNSUPPORTED_CLAUSE", group, EXACT)

    def _grouped_by(self, group: exp.Expr) -> list[exp.Expr]:
        assert isinstance(group, exp.Group), "GROUP BY"
        return nodes_of(group) if has_sets(group) else list(group.expressions)

    def _add_group(self, node: exp.Expr, written: exp.Expr) -> None:
        fragment = fragment_of(node, self.scope)
        same = (n for n, f in enumerate(self.values.group_fragments) if f.pieces == fragment.pieces)
        self._placed[id(written)] = place = next(same, len(self.group_texts))
        if place < len(self.group_texts):
            return
        column = node.unnest()
        kind = self.scope.resolve(column)[0].type if isinstance(column, exp.Column) else None
        name = default_name(node, self.scope)
        self.values.groups.append(Group(0, fragment.sql, name, kind, self.scope.span_of(written)))
        self.values.group_fragments.append(fragment)
        self.group_texts.append(self.scope.source.text_of(node))


def _select_start(source: Source) -> int:
    """Where the outermost SELECT stands."""
    depth = 0
    for token in source.tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.text.upper() == "SELECT":
            return int(token.start)
    return 0


def _body(source: Source, select: exp.Select) -> Span:
    """FROM and WHERE of the outermost SELECT."""
    depth, start, begun = 0, 0, False
    for token in source.tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        begun = begun or (depth == 0 and token.text.upper() == "SELECT")
        if begun and depth == 0 and token.text.upper() == "FROM":
            start = int(token.start)
            break
    nodes = (select.args.get(k) for k in ("group", "having", "order", "limit", "offset"))
    ends = [source.tokens[source.token_range(n)[0]].start for n in nodes if n is not None]
    return Span(start, min(ends, default=len(source.sql)))
