"""SELECT list, GROUP BY, HAVING, ORDER BY and LIMIT to values over aggregates and group columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from ..errors import ParseError, SkimqlError, UnknownName
from .aggregates import default_name, holds_aggregate, is_aggregate, not_aggregated, read_aggregate
from .amounts import MOST_DIGITS, MOST_ROWS_SHOWN, BadNumber, whole
from .bound import fragment_of
from .expressions import (
    BOUNDS,
    COMPARISONS,
    FUNCTIONS,
    LOGIC,
    Aggregated,
    Constant,
    Expression,
    Grouped,
    Operation,
    has_aggregate,
    parts_of,
)
from .fragment import Fragment, typed_name
from .join_graph import Aggregate, Feature, Group, Item, Order, Span
from .joined import Join
from .result_types import type_of
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
class Results:
    """Reads what a SELECT shows; aggregates and features are collected on the way."""

    select: exp.Select
    scope: Scope
    join: Join
    aggregates: list[Aggregate] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    group_fragments: list[Fragment] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    having: Expression | None = None
    order: list[Order] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    features: list[Feature] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def read(self) -> None:
        """Everything, in the order in which its parts need one another.

        Raises
        ------
        UnsupportedQuery, UnknownName
            For an item that is neither aggregated nor grouped, or that no estimate can be computed of.
        """
        self._read_groups()
        if not self.select.expressions:
            message = "the SELECT list is empty"
            raise self.scope.fault(message, "SKIMQL_SYNTAX_ERROR", self.select, "COUNT(*)", ParseError)
        for item in self.select.expressions:
            self._read_item(item)
        self._read_having()
        self._read_order()
        self._read_limit()
        if not self.aggregates:
            span = self.scope.span_of(self.select.expressions[0])
            message = "there is no aggregate to estimate"
            raise self.scope.fault(message, "SKIMQL_NOT_AGGREGATED", span, EXACT)

    def _feature(self, name: str, where: exp.Expr | Span) -> None:
        span = where if isinstance(where, Span) else self.scope.span_of(where)
        if all(f.name != name for f in self.features):
            self.features.append(Feature(name, span))

    def _read_groups(self) -> None:
        group = self.select.args.get("group")
        if group is None:
            return
        self._feature("GROUP BY", group)
        for key, name in (("rollup", "ROLLUP"), ("cube", "CUBE"), ("grouping_sets", "GROUPING SETS")):
            if group.args.get(key):
                raise self.scope.fault(
                    f"{name} cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", group, EXACT
                )
        nodes = list(group.expressions)
        if any(isinstance(n, exp.GroupingSets | exp.Tuple | exp.Cube | exp.Rollup) for n in nodes):
            raise self.scope.fault(
                "this grouping cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", group, EXACT
            )
        if group.args.get("all"):
            nodes = [i for i in self.select.expressions if not holds_aggregate(i)]
        for node in nodes:
            self._add_group(self._meant(node), node)
        if len({g.vertex for g in self.groups}) > 1:
            self._feature("GROUP BY over several tables", group)

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """The SELECT item behind an ordinal or an alias that is no column; the node itself otherwise."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._ordinal(node)
        if isinstance(node, exp.Column) and len(node.parts) == 1 and not self.scope.find(node.name):
            named = [
                i for i in self.select.expressions if isinstance(i, exp.Alias) and _same(i.alias, node.name)
            ]
            if named:
                return named[0].this  # type: ignore[no-any-return]
        return node.this if isinstance(node, exp.Alias) else node

    def _ordinal(self, node: exp.Literal) -> exp.Expr:
        item = self.select.expressions[self._ordinal_index(node)]
        return item.this if isinstance(item, exp.Alias) else item  # type: ignore[no-any-return]

    def _ordinal_index(self, node: exp.Literal) -> int:
        """The place in the SELECT list, from 0, that a number in GROUP BY or ORDER BY means."""
        most = len(self.select.expressions)
        try:
            return whole(node.name, 1, most) - 1
        except BadNumber as fault:
            message = f"there is no item {node.name} in the SELECT list"
            raise self.scope.fault(message, "SKIMQL_ORDINAL", node, f"1 to {most}", UnknownName) from fault

    def _add_group(self, node: exp.Expr, written: exp.Expr) -> None:
        fragment = fragment_of(node, self.scope)
        if len(fragment.vertices) > 1:
            message = "a GROUP BY expression must read one table"
            raise self.scope.fault(message, "SKIMQL_CROSS_EXPRESSION", written, EXACT)
        vertex = next(iter(fragment.vertices), 0)
        kind = self.join.type_of(fragment)
        name = default_name(node, self.scope)
        self.groups.append(Group(vertex, fragment.sql, name, kind, self.scope.span_of(written)))
        self.group_fragments.append(fragment)

    def _read_item(self, item: exp.Expr) -> None:
        inner = item.this if isinstance(item, exp.Alias) else item
        asked = self._name(item)
        name = self._free(asked)
        bare = inner.unnest()
        if is_aggregate(bare):
            value: Expression = Aggregated(len(self.aggregates))
            self._add_aggregate(read_aggregate(bare, name, self.scope))
        else:
            value = self._value(inner)
            self._refuse_conditions(value, inner)
            if has_aggregate(value):
                self._feature("expression over aggregates", inner)
        self.items.append(Item(name, value, self.scope.span_of(item), type_of(inner, self.scope)))
        self.asked.append(asked)

    def _name(self, item: exp.Expr) -> str:
        """The name that an item gives itself, or has by its text."""
        return item.alias if isinstance(item, exp.Alias) else default_name(item, self.scope)

    @cached_property
    def _given(self) -> set[str]:
        """The names of all items as they stand."""
        return {self._name(item).lower() for item in self.select.expressions}

    def _refuse_conditions(self, value: Expression, node: exp.Expr) -> None:
        """Refuse what has no interval: a remainder, and a condition, which is neither true nor false within one."""
        for part in parts_of(value):
            if (
                isinstance(part, Operation)
                and part.operator in ("%", *COMPARISONS, *LOGIC)
                and has_aggregate(part)
            ):
                what = "a remainder" if part.operator == "%" else "a condition"
                raise self.scope.fault(
                    f"{what} on an estimate has no interval",
                    "SKIMQL_AGGREGATE_EXPRESSION",
                    node,
                    EXACT,
                )

    def _free(self, name: str) -> str:
        """The name, numbered if an earlier item has it: result columns are looked up by name."""
        free, number = name, 2
        while free.lower() in self.taken or (number > 2 and free.lower() in self._given):
            free, number = f"{name}_{number}", number + 1
        self.taken.add(free.lower())
        return free

    def _add_aggregate(self, aggregate: Aggregate) -> None:
        self.aggregates.append(aggregate)
        if aggregate.function == "count_distinct":
            self._feature("COUNT(DISTINCT)", aggregate.span)

    def _registered(self, node: exp.Expr) -> Aggregated:
        """The aggregate, which an earlier item may already hold."""
        new = read_aggregate(node, default_name(node, self.scope), self.scope)
        meaning = (new.function, new.total, new.presence, new.distinct)
        for index, known in enumerate(self.aggregates):
            if (known.function, known.total, known.presence, known.distinct) == meaning:
                return Aggregated(index)
        self._add_aggregate(new)
        return Aggregated(len(self.aggregates) - 1)

    def _value(self, node: exp.Expr, aliases: str = "") -> Expression:
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
            return self._value(node.this, aliases)
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
            return Constant(_literal(node))
        operator = _BINARY.get(type(node))
        if operator is not None and isinstance(node, exp.Binary):
            return Operation(operator, (self._value(node.left, aliases), self._value(node.right, aliases)))
        if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
            # `x IS NOT NULL` has no text of its own for the IS inside: it would be taken for x.
            return Operation("not", (self._other_value(node.this, aliases),))
        if isinstance(node, exp.Neg | exp.Not):
            return Operation(
                "neg" if isinstance(node, exp.Neg) else "not", (self._value(node.this, aliases),)
            )
        return self._other_value(node, aliases)

    def _other_value(self, node: exp.Expr, aliases: str) -> Expression:
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return Operation("is_null", (self._value(node.this, aliases),))
        if isinstance(node, exp.Between):
            ends = (node.args["low"], node.args["high"])
            tested, low, high = (self._value(n, aliases) for n in (node.this, *ends))
            return Operation("and", (Operation(">=", (tested, low)), Operation("<=", (tested, high))))
        if isinstance(node, exp.In) and node.expressions:
            tested = self._value(node.this, aliases)
            equal = [Operation("=", (tested, self._value(n, aliases))) for n in node.expressions]
            return equal[0] if len(equal) == 1 else Operation("or", tuple(equal))
        if isinstance(node, exp.Cast | exp.TryCast) and node.to.this == exp.DType.DOUBLE:
            return self._value(node.this, aliases)
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
        values = tuple(_negated(self._value(a, aliases)) for a in arguments)
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
        found = [i for i, asked in zip(self.items, self.asked, strict=True) if _same(asked, node.name)]
        if len({i.expression for i in found}) > 1:
            if self.scope.find(node.name):
                return None
            message = f"{node.name} is the name of several items"
            raise self.scope.fault(message, "SKIMQL_AMBIGUOUS_NAME", node, "other names: AS ...", UnknownName)
        return next((i for i in (*found, *self.items) if i in found or _same(i.name, node.name)), None)

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
        self._feature("bounds in SELECT", node)
        name = node.name.lower()
        if len(arguments) == 1:
            # A bare name is the item's; within an aggregate names are columns.
            value = self._value(arguments[0], "first" if isinstance(arguments[0], exp.Column) else "last")
            if has_aggregate(value):
                return Operation(name, (value,))
        message = f"{name} takes one aggregate or its name"
        raise self.scope.fault(message, "SKIMQL_BOUND_ARGUMENT", node, f"COUNT(*) AS n, {name}(n)")

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

    def _read_having(self) -> None:
        having = self.select.args.get("having")
        if having is None:
            return
        self._feature("HAVING", having)
        self.having = self._value(having.this, "last")
        for part in parts_of(self.having):
            inside = part.operands if isinstance(part, Operation) and part.operator not in LOGIC else ()
            for operand in inside:
                self._refuse_conditions(operand, having.this)

    def _read_order(self) -> None:
        order = self.select.args.get("order")
        if order is None:
            return
        if self.groups:
            self._feature("ORDER BY", order)
        for key in order.expressions:
            node = key.this
            if isinstance(node, exp.Var) and node.name.lower() == "all":
                for item in self.items:
                    self._add_order(item.expression, key)
                continue
            if isinstance(node, exp.Literal) and not node.is_string:
                value = self.items[self._ordinal_index(node)].expression
            else:
                value = self._value(node, "first")
            self._refuse_conditions(value, node)
            self._add_order(value, key)

    def _add_order(self, value: Expression, key: exp.Expr) -> None:
        descending, nulls_first = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
        self.order.append(Order(value, descending, nulls_first, self.scope.span_of(key)))

    def _read_limit(self) -> None:
        for key in ("limit", "offset"):
            clause = self.select.args.get(key)
            if clause is None:
                continue
            number = clause.expression
            if isinstance(number, exp.Column | exp.Var) and number.name.lower() == "all":
                continue
            count = self._row_count(key, clause, number)
            if self.groups or (count == 0) == (key == "limit"):
                # Without groups there is one row: LIMIT 10 and OFFSET 0 keep it.
                self._feature(key.upper(), clause)
            if key == "limit":
                self.limit = count
            else:
                self.offset = count

    def _row_count(self, key: str, clause: exp.Expr, number: exp.Expr) -> int:
        why = ""
        if isinstance(number, exp.Literal) and not number.is_string:
            try:
                return whole(number.name, 0, MOST_ROWS_SHOWN)
            except BadNumber as fault:
                why = f"; this {fault}"
        message = f"{key.upper()} must be a whole number{why}"
        raise self.scope.fault(message, "SKIMQL_LIMIT", clause, f"write the number, or {EXACT}")


def _is_whole(value: Expression) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, int) and abs(value.value) <= MOST_DIGITS


def _negated(value: Expression) -> Expression:
    """A negative number as one constant."""
    inner = value.operands[0] if isinstance(value, Operation) and value.operator == "neg" else None
    if isinstance(inner, Constant) and isinstance(inner.value, (int, float)):
        return Constant(-inner.value)
    return value


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()


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
