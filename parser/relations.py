"""FROM to relations: tables become vertices, join conditions become conjuncts and equalities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from ..errors import UnknownName
from .fragment import Ref
from .join_graph import Schema, Span, TableSchema
from .scope import Output, Relation, Scope
from .select import Source

EXACT = "EXACT SELECT ..."


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A condition that every joined tuple must meet, in the scope that gives its names a meaning."""

    node: exp.Expr
    scope: Scope


@dataclass(frozen=True, slots=True)
class NamedEquality:
    """What USING or NATURAL says of one pair of columns."""

    left: Output
    right: Output
    span: Span


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A table in FROM: a vertex before its filter is known."""

    table: TableSchema
    alias: str
    span: Span


@dataclass(slots=True)
class Join:
    """Everything FROM says, flattened: vertices and conditions, whatever the syntax they came in."""

    schema: Schema
    occurrences: list[Occurrence] = field(default_factory=list)
    conjuncts: list[Conjunct] = field(default_factory=list)
    equalities: list[NamedEquality] = field(default_factory=list)

    def read(self, select: exp.Select, source: Source, shown: str) -> Scope:
        """The scope of a SELECT; its tables, ON conditions and WHERE are added here.

        Raises
        ------
        UnknownName
            For a table that the schema does not have, or an ambiguous name.
        UnsupportedQuery
            For what is no inner join of tables.
        """
        scope = Scope(source, shown)
        first = select.args.get("from_")
        if first is None:
            raise scope.fault("there is no FROM", "SKIMQL_NO_FROM", select, EXACT)
        self._refuse_modifiers(select, scope)
        self._add(first.this, scope)
        for join in select.args.get("joins") or ():
            self._add_join(join, scope)
        where = select.args.get("where")
        if where is not None:
            self.conjuncts.append(Conjunct(where.this, scope))
        return scope

    def _refuse_modifiers(self, select: exp.Select, scope: Scope) -> None:
        for key, name in _UNSUPPORTED_CLAUSES.items():
            value = select.args.get(key)
            if not value:
                continue
            node = value[0] if isinstance(value, list) else value
            raise scope.fault(f"{name} cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", node, EXACT)

    def _add_join(self, join: exp.Join, scope: Scope) -> None:
        outer = " ".join(
            w for w in (join.method, join.side, join.kind) if w and w not in ("INNER", "NATURAL")
        )
        if outer not in ("", "CROSS"):
            raise scope.fault(
                f"{outer} JOIN cannot be estimated; SkimQL joins on equality, inner joins only",
                "SKIMQL_OUTER_JOIN",
                join,
                EXACT,
            )
        left = list(scope.relations)
        self._add(join.this, scope)
        right = scope.relations[len(left) :]
        names = [(i.name, scope.source.span_of(i)) for i in join.args.get("using") or ()]
        if join.method == "NATURAL":
            span = scope.source.span_of(join)
            known = {o.name.lower() for r in left for o in r.outputs}
            names = [(o.name, span) for r in right for o in r.outputs if o.name.lower() in known]
        for name, span in names:
            self._add_named(name, span, left, right, scope)
        condition = join.args.get("on")
        if condition is not None:
            self.conjuncts.append(Conjunct(condition, replace(scope, relations=list(scope.relations))))

    def _add_named(
        self, name: str, span: Span, left: list[Relation], right: list[Relation], scope: Scope
    ) -> None:
        """One column of USING or NATURAL: the first of that name on the left, as Spark takes it."""
        sides = []
        for relations in (left, right):
            found = scope.find(name, relations)
            if not found:
                where = " or ".join(r.shown for r in relations)
                message = f"there is no column {name!r} in {where}"
                raise scope.fault(
                    message,
                    "SKIMQL_UNKNOWN_COLUMN",
                    span,
                    f"ON {left[0].shown}.k = {right[0].shown}.k",
                    UnknownName,
                )
            sides.append(scope.merged.get(name.lower(), found[0][1]) if relations is left else found[0][1])
        scope.merged[name.lower()] = sides[0]
        self.equalities.append(NamedEquality(sides[0], sides[1], span))

    def _add(self, node: exp.Expr, scope: Scope) -> None:
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise scope.fault(
                "only tables can stand in FROM here", "SKIMQL_UNSUPPORTED_RELATION", node, EXACT
            )
        for key, what in (("sample", "TABLESAMPLE"), ("pivots", "PIVOT"), ("version", "time travel")):
            if node.args.get(key):
                raise scope.fault(f"{what} cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", node, EXACT)
        name = tuple(p.name for p in node.parts)
        table = self._table(name, node, scope)
        alias: tuple[str, ...] = (node.alias,) if node.alias else name
        span = scope.source.span_of(node)
        vertex = len(self.occurrences)
        outputs = tuple(Output(c.name, c.type, Ref(vertex, c.name)) for c in table.columns)
        self.occurrences.append(Occurrence(table, self._free_alias(alias[-1]), span))
        self._add_relation(Relation(alias, outputs, span), node.alias_column_names, scope)

    def _add_relation(self, relation: Relation, new_names: list[str], scope: Scope) -> None:
        if new_names:
            if len(new_names) != len(relation.outputs):
                message = f"{relation.shown} has {len(relation.outputs)} columns, not {len(new_names)}"
                raise scope.fault(
                    message, "SKIMQL_COLUMN_COUNT", relation.span, "name each column", UnknownName
                )
            outputs = tuple(replace(o, name=n) for o, n in zip(relation.outputs, new_names, strict=True))
            relation = replace(relation, outputs=outputs)
        if any(r.shown.lower() == relation.shown.lower() for r in scope.relations):
            own = relation.shown
            raise scope.fault(
                f"{own} stands in FROM twice, so its columns are ambiguous",
                "SKIMQL_AMBIGUOUS_NAME",
                relation.span,
                f"{own} AS a JOIN {own} AS b ON a.k = b.k",
                UnknownName,
            )
        scope.relations.append(relation)

    def _table(self, name: tuple[str, ...], node: exp.Table, scope: Scope) -> TableSchema:
        wanted = ".".join(name).lower()
        found = self.schema.get(".".join(name)) or self.schema.get(wanted)
        if found is None:
            found = next((t for k, t in self.schema.items() if k.lower() == wanted), None)
        if found is not None:
            return found
        near = get_close_matches(wanted, [k.lower() for k in self.schema], 3)
        known = near or sorted(self.schema)
        hint = ", ".join(known) if known else "register one first"
        raise scope.fault(
            f"there is no table {'.'.join(name)!r}", "SKIMQL_UNKNOWN_TABLE", node, hint, UnknownName
        )

    def _free_alias(self, alias: str) -> str:
        """The alias, numbered if a flattened subquery already uses it."""
        taken = {o.alias.lower() for o in self.occurrences}
        free, number = alias, 2
        while free.lower() in taken:
            free, number = f"{alias}_{number}", number + 1
        return free


_UNSUPPORTED_CLAUSES = {
    "with_": "WITH",
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
