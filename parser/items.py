"""The clauses that make the result: SELECT list, GROUP BY, HAVING, ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from ..errors import ParseError, UnknownName
from .aggregates import default_name, holds_aggregate, is_aggregate
from .amounts import MOST_ROWS_SHOWN, BadNumber, whole
from .bound import fragment_of
from .expressions import (
    COMPARISONS,
    LOGIC,
    Aggregated,
    Expression,
    Operation,
    has_aggregate,
    parts_of,
)
from .join_graph import Group, Item, Order
from .joined import Join
from .result_types import type_of
from .result_values import ResultValues, same_name
from .scope import EXACT, Scope


@dataclass
class Results:
    """Reads what a SELECT shows; aggregates and features are collected on the way, in `values`."""

    select: exp.Select
    scope: Scope
    join: Join
    values: ResultValues = field(init=False)
    having: Expression | None = None
    order: list[Order] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.values = ResultValues(self.scope)

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
        if not self.values.aggregates:
            span = self.scope.span_of(self.select.expressions[0])
            message = "there is no aggregate to estimate"
            raise self.scope.fault(message, "SKIMQL_NOT_AGGREGATED", span, EXACT)

    def _read_groups(self) -> None:
        group = self.select.args.get("group")
        if group is None:
            return
        self.values.add_feature("GROUP BY", group)
        nodes = self._grouped_by(group)
        if group.args.get("all"):
            nodes = [i for i in self.select.expressions if not holds_aggregate(i)]
        for node in nodes:
            self._add_group(self._meant(node), node)
        if len({g.vertex for g in self.values.groups}) > 1:
            self.values.add_feature("GROUP BY over several tables", group)

    def _grouped_by(self, group: exp.Expr) -> list[exp.Expr]:
        """What stands in GROUP BY, where that is a plain list."""
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
        return nodes

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """The SELECT item behind an ordinal or an alias that is no column; the node itself otherwise."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._ordinal(node)
        if isinstance(node, exp.Column) and len(node.parts) == 1 and not self.scope.find(node.name):
            named = [
                i
                for i in self.select.expressions
                if isinstance(i, exp.Alias) and same_name(i.alias, node.name)
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
        self.values.groups.append(Group(vertex, fragment.sql, name, kind, self.scope.span_of(written)))
        self.values.group_fragments.append(fragment)

    def _read_item(self, item: exp.Expr) -> None:
        inner = item.this if isinstance(item, exp.Alias) else item
        asked = self._name(item)
        name = self._free(asked)
        bare = inner.unnest()
        if is_aggregate(bare):
            value: Expression = Aggregated(len(self.values.aggregates))
            self.values.add_aggregate(self.values.reads(bare, name, self.scope))
        else:
            value = self.values.value(inner)
            self._refuse_nested_conditions(value, inner)
            if has_aggregate(value):
                self.values.add_feature("expression over aggregates", inner)
        self.values.items.append(Item(name, value, self.scope.span_of(item), type_of(inner, self.scope)))
        self.values.asked.append(asked)

    def _name(self, item: exp.Expr) -> str:
        """The name that an item gives itself, or has by its text."""
        return item.alias if isinstance(item, exp.Alias) else default_name(item, self.scope)

    @cached_property
    def _given(self) -> set[str]:
        """The names of all items as they stand."""
        return {self._name(item).lower() for item in self.select.expressions}

    def _refuse_conditions(self, value: Expression, node: exp.Expr) -> None:
        """Refuse what has no interval: a remainder, and a condition that something else is made of."""
        for part in parts_of(value):
            if (
                isinstance(part, Operation)
                and part.operator in ("%", *COMPARISONS, *LOGIC)
                and has_aggregate(part)
            ):
                what = "a remainder" if part.operator == "%" else "what is made of a condition"
                raise self.scope.fault(
                    f"{what} on an estimate has no interval",
                    "SKIMQL_AGGREGATE_EXPRESSION",
                    node,
                    EXACT,
                )

    def _refuse_nested_conditions(self, value: Expression, node: exp.Expr) -> None:
        """As `_refuse_conditions`; the value may be a condition itself, or several behind AND, OR and NOT."""
        if not isinstance(value, Operation) or value.operator not in (*COMPARISONS, *LOGIC):
            self._refuse_conditions(value, node)
            return
        for operand in value.operands:
            if value.operator in ("and", "or", "not"):
                self._refuse_nested_conditions(operand, node)
            else:
                self._refuse_conditions(operand, node)

    def _free(self, name: str) -> str:
        """The name, numbered if an earlier item has it: result columns are looked up by name."""
        free, number = name, 2
        while free.lower() in self.taken or (number > 2 and free.lower() in self._given):
            free, number = f"{name}_{number}", number + 1
        self.taken.add(free.lower())
        return free

    def _read_having(self) -> None:
        having = self.select.args.get("having")
        if having is None:
            return
        self.values.add_feature("HAVING", having)
        self.having = self.values.value(having.this, "last")
        self._refuse_nested_conditions(self.having, having.this)

    def _read_order(self) -> None:
        order = self.select.args.get("order")
        if order is None:
            return
        if self.values.groups:
            self.values.add_feature("ORDER BY", order)
        for key in order.expressions:
            node = key.this
            if isinstance(node, exp.Var) and node.name.lower() == "all":
                for item in self.values.items:
                    self._add_order(item.expression, key)
                continue
            if isinstance(node, exp.Literal) and not node.is_string:
                value = self.values.items[self._ordinal_index(node)].expression
            else:
                value = self.values.value(node, "first")
            self._refuse_nested_conditions(value, node)
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
            if self.values.groups or (count == 0) == (key == "limit"):
                # Without groups there is one row: LIMIT 10 and OFFSET 0 keep it.
                self.values.add_feature(key.upper(), clause)
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
