"""Spark SQL expressions over the columns of one Arrow table, evaluated as Spark does in ANSI mode.

What is not known for certain is refused. Rows on which Spark does not evaluate a part (behind a condition that
decides, in another branch of a CASE) are not evaluated here either, so that they cannot fail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ...errors import SkimqlError
from ...parser.join_graph import Span
from ...parser.result_types import LARGEST_BIGINT, LARGEST_INT
from ...parser.select import Source, parse_expression
from .arithmetic import arithmetic, negative, widest
from .casts import cast
from .comparisons import compare
from .functions import call, like
from .intervals import shifted
from .values import Value, arrow_type, column_of, is_decimal, is_integer, not_known, repeated

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
# What sqlglot groups otherwise than Spark where it stands beside a comparison without parentheses.
_LOOSE = (
    *_COMPARISONS,
    exp.NullSafeEQ,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Like,
    exp.ILike,
    exp.Escape,
    exp.Not,
)
_CANNOT_FAIL = (
    *(
        exp.Column,
        exp.Identifier,
        exp.Literal,
        exp.Boolean,
        exp.Null,
        exp.Paren,
        exp.DataType,
        exp.DataTypeParam,
    ),
    *(*_COMPARISONS, exp.NullSafeEQ, exp.Between, exp.In, exp.Is, exp.And, exp.Or, exp.Not, exp.Like),
)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def evaluate(expression: str, table: pa.Table, zone: str = "UTC") -> Value:
    """The values of an expression on every tuple.

    Parameters
    ----------
    expression : str
        Spark SQL over the columns of `table`, names in any case.
    table : pyarrow.Table
    zone : str
        The session's time zone.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_NOT_IN_MEMORY`` for what is not known here.
    ValueFault
        If a value cannot be computed.
    """
    source = _parsed(expression)
    try:
        return _Evaluation(source, table, zone).value(source.tree)
    except pa.ArrowNotImplementedError as fault:
        raise not_known(f"{expression}, of such types,") from fault


def passing(condition: str | None, table: pa.Table, zone: str = "UTC") -> pa.Array | None:
    """Which tuples a filter keeps: a condition that is NULL keeps none. None for all."""
    if condition is None:
        return None
    found = evaluate(condition, table, zone)
    if found.kind not in ("boolean", "void"):
        raise not_known(f"a filter of type {found.kind}")
    return found.data.cast(pa.bool_()).fill_null(False)


@lru_cache(maxsize=512)
def _parsed(expression: str) -> Source:
    try:
        return parse_expression(expression, Span(0, len(expression)))
    except SkimqlError as fault:
        raise not_known(f"the expression {expression}") from fault


@dataclass
class _Evaluation:
    """One expression on one table, or on some of its tuples."""

    source: Source
    table: pa.Table
    zone: str
    _columns: dict[str, Value] = field(default_factory=dict)

    def value(self, node: exp.Expr) -> Value:
        """The values of a node."""
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Literal():
                return self._literal(node)
            case exp.Boolean():
                return repeated("boolean", bool(node.this), self._count)
            case exp.Null():
                return repeated("void", None, self._count)
            case exp.Neg():
                return negative(self.value(node.this))
            case exp.And() | exp.Or():
                return self._connected(node)
            case exp.Not():
                return Value("boolean", pc.invert(self._condition(node.this)))
            case exp.NullSafeEQ():
                self._refuse_loose(node.this, node.expression)
                return self._same(self.value(node.this), self.value(node.expression))
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._among(node)
            case exp.Between():
                return self._between(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                return self._branches([(node.this, node.args["true"])], node.args.get("false"))
            case exp.Coalesce():
                return self._first_known([node.this, *node.expressions])
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Like() | exp.ILike() | exp.Escape():
                return self._like(node)
            case exp.Add(expression=exp.Interval() as by) | exp.Sub(expression=exp.Interval() as by):
                sign = 1 if isinstance(node, exp.Add) else -1
                return shifted(self.value(node.this), by, sign, self._text(node))
        if type(node) in _ARITHMETIC:
            return arithmetic(_ARITHMETIC[type(node)], self.value(node.this), self.value(node.expression))
        if type(node) in _COMPARISONS:
            self._refuse_loose(node.this, node.expression)
            return compare(
                _COMPARISONS[type(node)], self.value(node.this), self.value(node.expression), self.zone
            )
        return call(node, self.value, self.zone, self._text(node))

    @property
    def _count(self) -> int:
        return int(self.table.num_rows)

    def _text(self, node: exp.Expr) -> str:
        return self.source.text_of(node)

    def _column(self, node: exp.Column) -> Value:
        if len(node.parts) != 1:
            raise not_known(f"the field {self._text(node)}")
        name = node.name.lower()
        if name not in self._columns:
            found = [n for n in self.table.column_names if n.lower() == name]
            if len(found) != 1:
                raise not_known(f"the column {node.name}")
            self._columns[name] = column_of(self.table[found[0]])
        return self._columns[name]

    def _literal(self, node: exp.Literal) -> Value:
        if node.is_string:
            return repeated("string", text_literal(self._text(node), str(node.this)), self._count)
        text = node.name
        if "e" in text.lower():
            return repeated("double", float(text), self._count)
        if "." in text:
            number = Decimal(text)
            places = len(text.partition(".")[2])
            size = max(len(text.replace(".", "").lstrip("0")), places, 1)
            return repeated(f"decimal({size},{places})", number, self._count)
        whole = int(text)
        if whole > LARGEST_BIGINT:
            return repeated(f"decimal({len(str(whole))},0)", Decimal(whole), self._count)
        kind = "int" if whole <= LARGEST_INT else "bigint"
        found = repeated(kind, whole, self._count)
        return Value(kind, found.data, len(str(whole)))

    def _condition(self, node: exp.Expr) -> pa.Array:
        found = self.value(node)
        if found.kind == "void":
            return found.data.cast(pa.bool_())
        if found.kind != "boolean":
            raise not_known(f"a condition of type {found.kind}")
        return found.data

    def _on(self, rows: pa.Array) -> _Evaluation:
        """The evaluation on some of the tuples."""
        return _Evaluation(self.source, self.table.filter(rows), self.zone)

    def _connected(self, node: exp.Connector) -> Value:
        """AND and OR: what stands behind is evaluated where what stands before does not decide."""
        both = isinstance(node, exp.And)
        parts = list(node.flatten(unnest=False))
        found = self._condition(parts[0])
        combine = pc.and_kleene if both else pc.or_kleene
        for part in parts[1:]:
            if all(isinstance(n, _CANNOT_FAIL) for n in part.walk()):
                found = combine(found, self._condition(part))
                continue
            open_rows = pc.fill_null(found if both else pc.invert(found), True)
            other = self._on(open_rows)._condition(part)
            rest = pc.replace_with_mask(repeated("boolean", both, self._count).data, open_rows, other)
            found = combine(found, rest)
        return Value("boolean", found)

    def _is(self, node: exp.Is) -> Value:
        self._refuse_loose(node.this)
        own = self.value(node.this).data
        match node.expression:
            case exp.Null():
                return Value("boolean", own.is_null())
            case exp.Boolean():
                told = self._condition(node.this)
                wanted = bool(node.expression.this)
                return Value("boolean", pc.equal(told, wanted).fill_null(False))
        raise not_known(self._text(node))

    def _among(self, node: exp.In) -> Value:
        if any(v for k, v in node.args.items() if k not in ("this", "expressions")) or not node.expressions:
            raise not_known(self._text(node))
        self._refuse_loose(node.this)
        own = self.value(node.this)
        members = [self.value(e) for e in node.expressions]
        found = [compare("=", own, member, self.zone).data for member in members]
        kinds = {v.kind for v in (own, *members) if v.kind != "void"}
        if len(kinds) > 1 and "string" in kinds:
            raise not_known("IN over values of several types")
        return Value("boolean", reduce(pc.or_kleene, found))

    def _between(self, node: exp.Between) -> Value:
        if node.args.get("symmetric"):
            raise not_known(self._text(node))
        self._refuse_loose(node.this)
        own, low, high = (self.value(n) for n in (node.this, node.args["low"], node.args["high"]))
        above, below = compare(">=", own, low, self.zone), compare("<=", own, high, self.zone)
        return Value("boolean", pc.and_kleene(above.data, below.data))

    def _case(self, node: exp.Case) -> Value:
        branches = []
        for branch in node.args["ifs"]:
            condition = branch.this
            if node.this is not None:
                condition = exp.EQ(
                    this=exp.Paren(this=node.this.copy()), expression=exp.Paren(this=condition.copy())
                )
            branches.append((condition, branch.args["true"]))
        return self._branches(branches, node.args.get("default"))

    def _branches(self, branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> Value:
        """The value of the first branch whose condition holds, each evaluated where it is wanted."""
        left = pa.array(np.ones(self._count, bool))
        parts: list[tuple[pa.Array, Value]] = []
        for condition, result in branches:
            there = self._on(left)
            holds = there._condition(condition).fill_null(False)
            chosen = pc.replace_with_mask(repeated("boolean", False, self._count).data, left, holds)
            parts.append((chosen, self._on(chosen).value(result)))
            left = pc.and_(left, pc.invert(chosen))
        last = self._on(left)
        parts.append(
            (left, last.value(default) if default is not None else repeated("void", None, last._count))
        )
        return self._put_together(parts)

    def _put_together(self, parts: list[tuple[pa.Array, Value]]) -> Value:
        kind = widest([v.kind for _, v in parts])
        found = pa.nulls(self._count, arrow_type(kind))
        for rows, value in parts:
            found = pc.replace_with_mask(found, rows, cast(value, kind, self.zone).data)
        return Value(kind, found)

    def _first_known(self, nodes: list[exp.Expr]) -> Value:
        left = pa.array(np.ones(self._count, bool))
        parts: list[tuple[pa.Array, Value]] = []
        for node in nodes:
            value = self._on(left).value(node)
            known = pc.replace_with_mask(
                repeated("boolean", False, self._count).data, left, value.data.is_valid()
            )
            parts.append((known, Value(value.kind, value.data.drop_null())))
            left = pc.and_(left, pc.invert(known))
        return self._put_together(parts)

    def _cast(self, node: exp.Cast | exp.TryCast) -> Value:
        if node.args.get("safe") or node.args.get("format") or node.args.get("default"):
            raise not_known(self._text(node))
        kind = _type_name(node.to)
        if kind is None:
            raise not_known(f"a cast to {node.to.sql('spark')}")
        inner = node.this
        if isinstance(inner, exp.Literal) and kind not in ("timestamp", "timestamp_ntz", "date"):
            # 2.5BD and 1L are read as casts of what is written.
            found = cast(self._written(inner, kind), kind, self.zone)
            suffixed = not inner.is_string and not self._text(node).lower().startswith(("cast", "("))
            return Value(kind, found.data, len(inner.name)) if suffixed and is_integer(kind) else found
        return cast(self.value(inner), kind, self.zone)

    def _written(self, node: exp.Literal, kind: str) -> Value:
        if node.is_string and is_decimal(kind) and not self._text(node).lstrip().startswith(("'", '"')):
            return repeated("string", str(node.this), self._count)
        return self._literal(node)

    def _like(self, node: exp.Expr) -> Value:
        escape = "\\"
        inner = node
        if isinstance(node, exp.Escape):
            escape, inner = str(node.expression.this), node.this
            if not isinstance(node.expression, exp.Literal) or len(escape) != 1:
                raise not_known(self._text(node))
        self._refuse_loose(inner.this)
        pattern = inner.expression
        if not isinstance(inner, (exp.Like, exp.ILike)) or not (
            isinstance(pattern, exp.Literal) and pattern.is_string
        ):
            raise not_known(self._text(node))
        text = text_literal(self._text(pattern), str(pattern.this))
        found = like(self.value(inner.this), text, escape, isinstance(inner, exp.ILike))
        return Value("boolean", pc.invert(found)) if inner.args.get("negate") else Value("boolean", found)

    def _same(self, left: Value, right: Value) -> Value:
        equal = compare("=", left, right, self.zone).data
        both = pc.and_(left.data.is_null(), right.data.is_null())
        return Value("boolean", pc.or_(equal.fill_null(False), both))

    def _refuse_loose(self, *operands: exp.Expr) -> None:
        """Refuse what sqlglot and Spark may group in two ways."""
        for operand in operands:
            if isinstance(operand, _LOOSE):
                raise not_known(f"a condition as an operand without parentheses: {self._text(operand)}")


def _type_name(kind: exp.DataType) -> str | None:
    name = kind.sql("spark").lower().replace(" ", "")
    if name == "decimal":
        return "decimal(10,0)"
    if name.startswith("decimal(") and "," not in name:
        return name[:-1] + ",0)"
    if name in ("text", "string"):
        return "string"
    known = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "binary", "date")
    if name in (*known, "timestamp", "timestamp_ntz") or name.startswith("decimal("):
        return name
    return None


def text_literal(text: str, read: str) -> str:
    """The text that a literal stands for in Spark; `read` is what sqlglot made of it."""
    text = text.strip()
    if "\\" not in text or not text:
        quote = text[:1]
        if quote in ("'", '"') and quote in text[1:-1]:
            raise not_known(f"the text {text}")
        return read
    if text[0] not in "'\"" or text[-1] != text[0] or text[0] in text[1:-1].replace("\\" + text[0], ""):
        raise not_known(f"the text {text}")
    body, made, at = text[1:-1], "", 0
    while at < len(body):
        sign = body[at]
        if sign != "\\":
            made, at = made + sign, at + 1
            continue
        letter = body[at + 1]
        if letter in "uU" or (letter.isdigit() and letter != "0") or body[at + 1 : at + 4].isdigit():
            raise not_known(f"the text {text}")
        made, at = made + _ESCAPES.get(letter, letter), at + 2
    return made
