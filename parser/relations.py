"""FROM to relations: tables become vertices, join conditions become conjuncts and equalities.

Subqueries, WITH and views that only select, project and join are flattened: their tables and conditions join
those of the query around them, and their columns stand for the expressions in their SELECT lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from ..errors import ParseError, SkimqlError, UnknownName
from .fragment import Ref, typed_name
from .join_graph import Span, TableSchema
from .joined import Conjunct, Join, NamedEquality, Occurrence, OuterJoin
from .outer import refuse_outer_joins
from .outputs import item_outputs, renamed
from .predicates import read_conditions
from .scope import EXACT, NamedSelect, Output, Relation, Scope, unknown_table
from .select import parse_select

MAX_TABLES = 100


@dataclass(slots=True)
class FromReader(Join):
    """Reads FROM clauses into a join."""

    def read(self, select: exp.Select, outside: Scope) -> Scope:
        """The scope of a SELECT; its tables, ON conditions and WHERE are added here.

        `outside` gives the text and the names of WITH; its relations are not seen.

        Raises
        ------
        UnknownName
            For a table that the schema does not have, or an ambiguous name.
        UnsupportedQuery
            For what is no join of tables.
        """
        scope = replace(outside, relations=[], merged={}, star=[], first_vertex=len(self.occurrences))
        self._add_named_selects(select, scope)
        first = select.args.get("from_")
        if first is None:
            raise scope.fault("there is no FROM", "SKIMQL_NO_FROM", select, EXACT)
        for key, name in _UNSUPPORTED_CLAUSES.items():
            for node in _nodes(select.args.get(key)):
                # DISTINCT alone has no place of its own.
                place = node if scope.source.token_range(node) != (0, 0) else select
                raise scope.fault(f"{name} cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", place, EXACT)
        self._add(first.this, scope)
        for join in select.args.get("joins") or ():
            self._add_join(join, scope)
        where = select.args.get("where")
        if where is not None:
            self.conditions.append(Conjunct(where.this, scope))
        return scope

    def _add_named_selects(self, select: exp.Select, scope: Scope) -> None:
        with_ = select.args.get("with_")
        if with_ is None:
            return
        if with_.args.get("recursive"):
            raise scope.fault("WITH RECURSIVE cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", with_, EXACT)
        for named in with_.expressions:
            # Each name sees those before it; the mapping it was read with is the one it keeps.
            seen = replace(scope, named=dict(scope.named))
            scope.named = {**scope.named, named.alias.lower(): NamedSelect(named, seen)}

    def _add_join(self, join: exp.Join, scope: Scope) -> None:
        words = " ".join(
            w for w in (join.method, join.side, join.kind) if w not in ("", "INNER", "NATURAL", "CROSS")
        )
        sides = {"": (), "LEFT": (1,), "RIGHT": (0,), "FULL": (0, 1)}.get(words.removesuffix(" OUTER"))
        if sides is None:
            message = f"{words} JOIN cannot be estimated; SkimQL joins on equality, inner joins only"
            raise scope.fault(message, "SKIMQL_OUTER_JOIN", join, EXACT)
        left, first_right = list(scope.relations), len(self.occurrences)
        self._add(join.this, scope)
        vertices = (
            frozenset(range(scope.first_vertex, first_right)),
            frozenset(range(first_right, len(self.occurrences))),
        )
        origin = len(self.outer_joins) if sides else None
        self._add_names(join, left, scope.relations[len(left) :], scope, origin)
        condition = join.args.get("on")
        if condition is not None:
            here = replace(scope, relations=list(scope.relations), merged=dict(scope.merged))
            self.conditions.append(Conjunct(condition, here, origin))
        if sides:
            nullable = tuple(vertices[s] for s in sides)
            self.outer_joins.append(
                OuterJoin(nullable, len(self.conditions), f"{words} JOIN", scope.span_of(join))
            )

    def _add_names(
        self, join: exp.Join, left: list[Relation], right: list[Relation], scope: Scope, origin: int | None
    ) -> None:
        """The columns of USING or NATURAL."""
        names = [(i.name, scope.span_of(i)) for i in join.args.get("using") or ()]
        if join.method == "NATURAL":
            known = {o.name.lower() for r in left for o in r.outputs}
            names = [
                (o.name, scope.span_of(join)) for r in right for o in r.outputs if o.name.lower() in known
            ]
        merged = []
        for name, span in names:
            one, other = self._pair(name, span, left, right, scope)
            self.conditions.append(NamedEquality(one, other, span, origin))
            kept = other if join.side == "RIGHT" else replace(one, strict=one.strict and join.side != "FULL")
            scope.merged[name.lower()] = kept
            merged.append(kept)
        # SELECT * shows the merged columns first, as Spark does.
        hidden = {name.lower() for name, _ in names}
        scope.star = merged + [o for o in scope.star if o.name.lower() not in hidden]

    def _pair(
        self, name: str, span: Span, left: list[Relation], right: list[Relation], scope: Scope
    ) -> tuple[Output, Output]:
        """One column of USING on both sides; on the left the first of that name, as Spark takes it."""
        sides = []
        for relations in (left, right):
            found = scope.find(name, relations)
            if not found:
                where = " or ".join(r.shown for r in relations)
                message = f"there is no column {name!r} in {where}"
                hint = f"ON {_condition_hint(left[0], right[0])}"
                raise scope.fault(message, "SKIMQL_UNKNOWN_COLUMN", span, hint, UnknownName)
            merged = scope.merged.get(name.lower()) if relations is left else None
            sides.append(merged or found[0][1])
        return sides[0], sides[1]

    def _add(self, node: exp.Expr, scope: Scope) -> None:
        """One item of FROM."""
        if isinstance(node, exp.Subquery):
            self._add_subquery(node, scope)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            self._add_table(node, scope)
            for join in node.args.get("joins") or ():
                self._add_join(join, scope)
        else:
            message = "only tables and SELECTs can stand in FROM"
            raise scope.fault(message, "SKIMQL_UNSUPPORTED_RELATION", node, EXACT)

    def _add_subquery(self, node: exp.Subquery, scope: Scope) -> None:
        _refuse_modifiers(node, scope)
        inner = node.this
        while isinstance(inner, exp.Subquery) and not inner.alias:
            inner = inner.this
        name = (node.alias,) if node.alias else ()
        if isinstance(inner, exp.Table):
            part = replace(scope, relations=[], merged={}, star=[], first_vertex=len(self.occurrences))
            self._add(inner, part)
            if node.alias:
                self._add_relation(
                    Relation(name, tuple(part.star), scope.span_of(node)), node.alias_column_names, scope
                )
                return
            for relation in part.relations:
                self._add_relation(relation, [], scope)
            scope.merged.update(part.merged)
            return
        first = len(self.occurrences)
        outputs = self.select_outputs(inner, scope)
        self._name_single(first, node.alias)
        self._add_relation(Relation(name, outputs, scope.span_of(node)), node.alias_column_names, scope)
        for join in node.args.get("joins") or ():
            self._add_join(join, scope)

    def select_outputs(
        self, inner: exp.Expr, scope: Scope, where: str = " inside FROM"
    ) -> tuple[Output, ...]:
        """A SELECT in FROM, flattened: the columns it offers.

        Raises
        ------
        UnsupportedQuery, UnknownName
            If it does more than select, project and join.
        """
        if not isinstance(inner, exp.Select):
            what = "UNION, INTERSECT and EXCEPT" if isinstance(inner, exp.SetOperation) else "this"
            message = f"{what}{where} cannot be estimated here"
            raise scope.fault(message, "SKIMQL_SET_OPERATION", inner, EXACT)
        for key, name in _NOT_FLAT.items():
            for clause in _nodes(inner.args.get(key)):
                message = f"{name}{where} cannot be estimated"
                raise scope.fault(message, "SKIMQL_AGGREGATE_IN_FROM", clause, EXACT)
        if not inner.expressions:
            raise scope.fault("the SELECT list is empty", "SKIMQL_SYNTAX_ERROR", inner, EXACT, ParseError)
        own = self.read(inner, scope)
        return tuple(o for item in inner.expressions for o in item_outputs(item, own))

    def _add_table(self, node: exp.Table, scope: Scope) -> None:
        _refuse_modifiers(node, scope)
        name = tuple(p.name for p in node.parts)
        span = scope.span_of(node)
        alias: tuple[str, ...] = (node.alias,) if node.alias else name
        named = scope.named.get(name[0].lower()) if len(name) == 1 else None
        if named is not None:
            first = len(self.occurrences)
            outputs = self.select_outputs(named.node.this, named.scope)
            self._name_single(first, alias[-1])
            relation = renamed(Relation(alias, outputs, span), named.node.alias_column_names, scope)
            self._add_relation(relation, node.alias_column_names, scope)
            return
        table = scope.table(".".join(name))
        if table is None:
            ends = scope.span_of(node.parts[0]), scope.span_of(node.parts[-1])
            raise unknown_table(".".join(name), Span(ends[0].start, ends[1].end), scope)
        outputs = self._view_outputs(table, alias[-1], span, scope) or self.base_outputs(
            table, alias[-1], span, scope
        )
        self._add_relation(Relation(alias, outputs, span), node.alias_column_names, scope)

    def base_outputs(self, table: TableSchema, alias: str, span: Span, scope: Scope) -> tuple[Output, ...]:
        """A new vertex for a table: its columns."""
        vertex = len(self.occurrences)
        if vertex >= MAX_TABLES:
            message = f"more than {MAX_TABLES} tables in one query"
            raise scope.fault(message, "SKIMQL_TOO_MANY_TABLES", span, EXACT)
        self.occurrences.append(Occurrence(table, self._free_alias(alias), span))
        return tuple(Output(c.name, c.type, Ref(vertex, c.name)) for c in table.columns)

    def _view_outputs(self, table: TableSchema, alias: str, span: Span, scope: Scope) -> tuple[Output, ...]:
        """A view's columns over its base tables; none if it is no view, or one that Spark evaluates whole."""
        if table.view is None or self.whole_views:
            return ()
        trial = FromReader(self.schema, occurrences=list(self.occurrences))
        try:
            source = parse_select(table.view)
            inside = Scope(source, scope.shown, self.schema, place=span)
            outputs = trial.select_outputs(source.tree, inside)
            trial._check(inside)
        except SkimqlError:
            # Not select-project-join, or over tables that are not registered: the view is a table then.
            return ()
        if [o.name.lower() for o in outputs] != [c.name.lower() for c in table.columns]:
            return ()
        first, self.occurrences = len(self.occurrences), trial.occurrences
        self._name_single(first, alias)
        self.views_read = True
        self.conditions.extend(replace(c, origin=None) for c in trial.conditions)
        return outputs

    def _check(self, scope: Scope) -> None:
        """Raise now what would be raised when the whole query has been read."""
        refuse_outer_joins(self, scope)
        read_conditions(self)

    def _add_relation(self, relation: Relation, new_names: list[str], scope: Scope) -> None:
        relation = renamed(relation, new_names, scope)
        if relation.name and any(r.shown.lower() == relation.shown.lower() for r in scope.relations):
            own = relation.shown
            message = f"{own} stands in FROM twice, so its columns are ambiguous"
            column = typed_name(relation.outputs[0].name) if relation.outputs else "k"
            hint = f"{relation.typed} AS a JOIN {relation.typed} AS b ON a.{column} = b.{column}"
            raise scope.fault(message, "SKIMQL_AMBIGUOUS_NAME", relation.span, hint, UnknownName)
        scope.relations.append(relation)
        scope.star.extend(relation.outputs)

    def _name_single(self, first: int, alias: str) -> None:
        """A subquery over one table gives it its own alias: the user knows it by that."""
        if alias and len(self.occurrences) == first + 1:
            single = self.occurrences.pop()
            self.occurrences.append(replace(single, alias=self._free_alias(alias)))

    def _free_alias(self, alias: str) -> str:
        """The alias, numbered if a flattened subquery already uses it."""
        taken = {o.alias.lower() for o in self.occurrences}
        free, number = alias, 2
        while free.lower() in taken:
            free, number = f"{alias}_{number}", number + 1
        return free


def _condition_hint(left: Relation, right: Relation) -> str:
    """An equality of two relations as it may be typed, on the first column of one name that both have."""
    names = {o.name.lower() for o in right.outputs}
    shared = [typed_name(o.name) for o in left.outputs if o.name.lower() in names]
    column = shared[0] if shared else "k"
    return f"{left.typed}.{column} = {right.typed}.{column}"


def _nodes(value: object) -> Iterator[exp.Expr]:
    for node in value if isinstance(value, list) else [value]:
        if isinstance(node, exp.Expr):
            yield node


def _refuse_modifiers(node: exp.Expr, scope: Scope) -> None:
    for key, name in (
        ("sample", "TABLESAMPLE"),
        ("pivots", "PIVOT"),
        ("version", "time travel"),
        ("when", "time travel"),
    ):
        if node.args.get(key):
            raise scope.fault(f"{name} cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", node, EXACT)


_UNSUPPORTED_CLAUSES = {
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "distinct": "SELECT DISTINCT",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "match": "MATCH_RECOGNIZE",
}
_NOT_FLAT = {"group": "GROUP BY", "having": "HAVING", "limit": "LIMIT", "offset": "OFFSET"}
