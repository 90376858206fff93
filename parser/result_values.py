"""Values over aggregates and group columns, in SELECT, HAVING and ORDER BY, and what the names in them mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from ..errors import SkimqlError, UnknownName
from .aggregates import default_name, holds_aggregate, is_aggregate, not_aggregated, read_aggregate
from .amounts import MOST_DIGITS
from .bound import fragment_of
from .expressions import (
    BOUNDS,
    FUNCTIONS,
    Aggregated,
    Constant,
    Expression,
    Grouped,
    Operation,
    has_aggregate,
    parts_of,
    reads_a_bound,
)
from .fragment import Fragment, typed_name
from .join_graph import Aggregate, Feature, Group, Item, Span
from .scope import EXACT, Scope, columns_of

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "and",
    exp.Or: "or",
}


_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Round: "round",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Abs: "abs",
    exp.Greatest: "greatest",
    exp.Least: "least",
    exp.Coalesce: "coalesce",
    exp.Nullif: "nullif",
}


@dataclass
class ResultValues:
    """Reads values; what was read of a SELECT so far is collected here.

    Attributes
    ----------
    scope : Scope
    reads : callable
        Makes an `Aggregate` of (node, name, scope).
    aggregates, groups, items, features : list
        As in `Query`.
    group_fragments : list of Fragment
        The expressions of `groups`.
    asked : list of str
        The names of `items` before those that several ask for were numbered.
    """

    scope: Scope
    reads: Callable[[exp.Expr, str, Scope], Aggregate] = read_aggregate
    aggregates: list[Aggregate] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    group_fragments: list[Fragment] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)

    def add_feature(self, name: str, where: exp.Expr | Span, exactly: str | None = None) -> None:
        """Note a feature where it stands first, and everywhere where something else is to be run exactly."""
        feature = Feature(name, where if isinstance(where, Span) else self.scope.span_of(where), exactly)
        known = (
            feature in self.features if exactly is not None else any(f.name == name for f in self.features)
        )
        if not known:
            self.features.append(feature)

    def add_aggregate(self, aggregate: Aggregate) -> None:
        self.aggregates.append(aggregate)
        if aggregate.function == "count_distinct":
            self.add_feature("COUNT(DISTINCT)", aggregate.span)

    def _registered(self, node: exp.Expr) -> Aggregated:
        """The aggregate, which an earlier item may already hold."""
        new = self.reads(node, default_name(node, self.scope), self.scope)
        meaning = (new.function, new.total, new.presence, new.distinct)
        for index, known in enumerate(self.aggregates):
            if (known.function, known.total, known.presence, known.distinct) == meaning:
                return Aggregated(index)
        self.add_aggregate(new)
        return Aggregated(len(self.aggregates) - 1)

    def value(self, node: exp.Expr, aliases: str = "") -> Expression:
        """An expression over aggregates and groups; `aliases` says which names of items may stand in it.

        In ORDER BY ("first") a name means the item of that name, and a column only where there is none; in HAVING
        ("last") it means a column that is grouped by, and the item otherwise. So Spark resolves them.
        """
        if is_aggregate(node):
            if aliases == "first":
                self._refuse_items_within(node)
            return self._registered(node)
        grouped = self._grouped(node, aliases)
        if grouped is not None:
            return grouped
        if isinstance(node, exp.Paren):
            return self.value(node.this, aliases)
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
            return Constant(_literal(node))
        operator = _BINARY.get(type(node))
        if operator is not None and isinstance(node, exp.Binary):
            return Operation(operator, (self.value(node.left, aliases), self.value(node.right, aliases)))
        if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
            # `x IS NOT NULL` has no text of its own for the IS inside: it would be taken for x.
            return Operation("not", (self._other_value(node.this, aliases),))
        if isinstance(node, exp.Neg | exp.Not):
            return Operation("neg" if isinstance(node, exp.Neg) else "not", (self.value(node.this, aliases),))
        return self._other_value(node, aliases)

    def _other_value(self, node: exp.Expr, aliases: str) -> Expression:
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return Operation("is_null", (self.value(node.this, aliases),))
        if isinstance(node, exp.Between):
            ends = (node.args["low"], node.args["high"])
            tested, low, high = (self.value(n, aliases) for n in (node.this, *ends))
            return Operation("and", (Operation(">=", (tested, low)), Operation("<=", (tested, high))))
        if isinstance(node, exp.In) and node.expressions:
            tested = self.value(node.this, aliases)
            equal = [Operation("=", (tested, self.value(n, aliases))) for n in node.expressions]
            return equal[0] if len(equal) == 1 else Operation("or", tuple(equal))
        if isinstance(node, exp.Cast | exp.TryCast) and node.to.this == exp.DType.DOUBLE:
            return self.value(node.this, aliases)
        name = _FUNCTIONS.get(type(node))
        if name is not None and (name not in ("floor", "ceil") or not node.args.get("decimals")):
            return self._function(name, node, aliases)
        if isinstance(node, exp.Anonymous) and node.name.lower() in BOUNDS:
            return self._bound(node)
        raise self._no_value(node, aliases)

    def _function(self, name: str, node: exp.Expr, aliases: str) -> Expression:
        """A function of estimates whose value on an interval is an interval."""
        digits = node.args.get("decimals") if name == "round" else node.args.get("expression")
        arguments = [node.this, *node.expressions, *([digits] if digits is not None else [])]
        values = tuple(_negated(self.value(a, aliases)) for a in arguments)
        plain = all(isinstance(v, Constant) or has_aggregate(v) for v in values)
        digits_known = name != "round" or len(values) == 1 or _is_whole(values[1])
        second = name not in ("coalesce", "nullif") or (
            len(values) == 2 and has_aggregate(values[0]) and isinstance(values[1], Constant)
        )
        if not (plain and digits_known and second and any(map(has_aggregate, values))):
            raise self._no_value(node, aliases)
        return Operation(name, values)

    def _grouped(self, node: exp.Expr, aliases: str) -> Expression | None:
        """The group column or item that the node is, if it is one."""
        if isinstance(node, exp.Star) or isinstance(node.this, exp.Star):
            raise not_aggregated(node, self.scope, [g.span for g in self.groups])
        if isinstance(node, exp.Literal) or holds_aggregate(node) or _has_bound(node):
            return None
        named = self._item_of(node) if aliases else None
        if named is not None:
            known = aliases == "last" and self.scope.find(node.name)
            return (self._matching_group(node) if known else None) or named.expression
        if not any(True for _ in columns_of(node)):
            return None
        if aliases and not isinstance(node, exp.Column):
            return self._matching_group(node) if self._only_columns(node, aliases) else None
        return self._matching_group(node)

    def _item_of(self, node: exp.Expr) -> Item | None:
        """The item that a bare name names; of several items of one name, a column of that name goes before all."""
        if not isinstance(node, exp.Column) or len(node.parts) > 1:
            return None
        found = [i for i, asked in zip(self.items, self.asked, strict=True) if same_name(asked, node.name)]
        if len({i.expression for i in found}) > 1:
            if self.scope.find(node.name):
                return None
            message = f"{node.name} is the name of several items"
            raise self.scope.fault(message, "SKIMQL_AMBIGUOUS_NAME", node, "other names: AS ...", UnknownName)
        return next((i for i in (*found, *self.items) if i in found or same_name(i.name, node.name)), None)

    def _refuse_items_within(self, aggregate: exp.Expr) -> None:
        """Refuse an aggregate of an item in ORDER BY, where the name does not mean the column any more."""
        for column in columns_of(aggregate):
            if self._is_itself(column):
                continue
            message = f"in ORDER BY {column.name} is the item of that name in the SELECT list"
            owners = [r for r, _ in self.scope.find(column.name)]
            hint = f"{owners[0].typed}.{typed_name(column.name)}" if owners and owners[0].name else EXACT
            raise self.scope.fault(message, "SKIMQL_MISPLACED_AGGREGATE", column, hint)

    def _only_columns(self, node: exp.Expr, aliases: str) -> bool:
        """Whether every name in it is a column, so that it may be a group expression."""
        return all(
            len(c.parts) > 1 or (self.scope.find(c.name) and (aliases == "last" or self._is_itself(c)))
            for c in columns_of(node)
        )

    def _is_itself(self, column: exp.Column) -> bool:
        """Whether a name in ORDER BY means the column: no item has it, or the item is the column."""
        item = self._item_of(column)
        if item is None:
            return True
        try:
            return self._matching_group(column) == item.expression
        except UnknownName as fault:
            if fault.code != "SKIMQL_AMBIGUOUS_NAME":
                raise
            # Columns of several tables have the name: it can only mean the item.
            return False

    def _names_an_item(self, column: exp.Column) -> bool:
        """Whether a name means an item that is not the column of that name."""
        known = self._item_of(column) is None or self.scope.find(column.name)
        return not known or not self._is_itself(column)

    def _matching_group(self, node: exp.Expr) -> Grouped | None:
        fragment = fragment_of(node, self.scope)
        for index, group in enumerate(self.group_fragments):
            if group.pieces == fragment.pieces or group.wrapped().pieces == fragment.pieces:
                return Grouped(index)
        return None

    def _bound(self, node: exp.Anonymous) -> Expression:
        arguments = node.expressions
        name = node.name.lower()
        if len(arguments) == 1:
            # A bare name is the item's; within an aggregate names are columns.
            value = self.value(arguments[0], "first" if isinstance(arguments[0], exp.Column) else "last")
            if has_aggregate(value) and not any(map(reads_a_bound, parts_of(value))):
                self.add_feature("bounds in SELECT", node, self._without_bound(name, arguments[0]))
                return Operation(name, (value,))
        message = f"{name} takes one aggregate or its name"
        raise self.scope.fault(message, "SKIMQL_BOUND_ARGUMENT", node, f"COUNT(*) AS n, {name}(n)")

    def _without_bound(self, name: str, operand: exp.Expr) -> str:
        """What Spark computes in the place of `lower_bound` and its like of a value that is known."""
        item = self._item_of(operand) if isinstance(operand, exp.Column) else None
        if item is None:
            text = self.scope.source.text_of(operand)
        else:
            # The name may be a column's too, which Spark would take it for.
            text = _without_alias(self.scope.source.sql[item.span.start : item.span.end], operand.name)
        # On a line of its own, in case that a comment is the last of it.
        text = f"({text}\n)"
        return (
            f"CAST({text} AS DOUBLE)" if name in ("lower_bound", "upper_bound") else f"NVL2({text}, 0D, NULL)"
        )

    def _no_value(self, node: exp.Expr, aliases: str) -> SkimqlError:
        if not holds_aggregate(node):
            # In GROUP BY the name of an item would mean a column, or nothing.
            items = aliases != "" and any(self._names_an_item(c) for c in columns_of(node))
            return not_aggregated(node, self.scope, [g.span for g in self.groups], groupable=not items)
        return self.scope.fault(
            "no interval can be computed for this expression over aggregates; for + - * / and "
            + ", ".join(f.upper() for f in FUNCTIONS)
            + " one can",
            "SKIMQL_AGGREGATE_EXPRESSION",
            node,
            EXACT,
        )


def _without_alias(item: str, name: str) -> str:
    """The text of an item without the name that it is given."""
    quoted = re.escape(name)
    alias = rf"(?:\bAS\b|(?<=[\s)]))\s*(?:`{quoted}`|\b{quoted})\s*$"
    return re.sub(alias, "", item, count=1, flags=re.IGNORECASE)


def _is_whole(value: Expression) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, int) and abs(value.value) <= MOST_DIGITS


def _negated(value: Expression) -> Expression:
    """A negative number as one constant."""
    inner = value.operands[0] if isinstance(value, Operation) and value.operator == "neg" else None
    if isinstance(inner, Constant) and isinstance(inner.value, (int, float)):
        return Constant(-inner.value)
    return value


def _has_bound(node: exp.Expr) -> bool:
    return any(n.name.lower() in BOUNDS for n in node.find_all(exp.Anonymous))


def _literal(node: exp.Expr) -> int | float | str | bool | None:
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if node.is_string:
        return node.name
    return int(node.name) if node.name.isascii() and node.name.isdigit() else float(node.name)


def same_name(one: str, other: str) -> bool:
    return one.lower() == other.lower()
