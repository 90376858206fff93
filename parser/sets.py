"""COUNT(DISTINCT k) FROM (SELECT k FROM a INTERSECT SELECT k FROM b): set expressions over single tables."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from .aggregates import default_name, is_aggregate
from .bound import bound_fragment, fragment_of
from .classes import INTEGERS
from .join_graph import Aggregate, SetLeaf, SetOperation, Span
from .joined import Conjunct
from .relations import FromReader
from .scope import EXACT, Output, Relation, Scope
from .types import is_padded

_OPERATORS: dict[type[exp.Expr], str] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}


def set_operation_of(select: exp.Select) -> exp.Subquery | None:
    """The item of FROM that is a set expression, if it is the only one."""
    first = select.args.get("from_")
    item = first.this if first is not None else None
    if not isinstance(item, exp.Subquery) or select.args.get("joins"):
        return None
    return item if isinstance(item.unnest(), exp.SetOperation) else None


def read_set_expression(
    select: exp.Select, subquery: exp.Subquery, join: FromReader, outside: Scope
) -> tuple[SetLeaf | SetOperation, Aggregate]:
    """The set expression and the COUNT(DISTINCT) over it; tables and conditions go to `join`.

    Raises
    ------
    UnsupportedQuery
        For anything but one COUNT(DISTINCT ...) of its columns, a set of several tables, or columns of
        different types.
    """
    scope = replace(outside, relations=[], merged={}, star=[])
    for key in ("group", "having", "order", "limit", "offset", "distinct", "with_", "laterals"):
        clause = select.args.get(key)
        if clause:
            node = clause[0] if isinstance(clause, list) else clause
            message = f"{key.strip('_').upper()} beside a set expression cannot be estimated"
            raise scope.fault(message, "SKIMQL_UNSUPPORTED_CLAUSE", node, EXACT)
    leaves: list[tuple[exp.Expr, tuple[Output, ...]]] = []
    tree = _read(subquery.unnest(), join, scope, leaves)
    names = subquery.alias_column_names or [o.name for o in leaves[0][1]]
    where = select.args.get("where")
    columns: list[tuple[str, ...]] = []
    aggregate = None
    for node, outputs in leaves:
        if len(outputs) != len(names):
            message = f"the sets have {len(names)} and {len(outputs)} columns"
            raise scope.fault(message, "SKIMQL_COLUMN_COUNT", node, "select the same columns in each")
        renamed = tuple(replace(o, name=n) for o, n in zip(outputs, names, strict=True))
        own = replace(scope, relations=[Relation((subquery.alias,), renamed, scope.span_of(node))])
        if where is not None:
            join.conditions.append(Conjunct(where.this, own))
        aggregate, counted = _counted(select, own)
        columns.append(counted)
    assert aggregate is not None
    if _compares_rows(tree):
        _check_whole_rows(select, names, scope)
    _same_types([o for _, o in leaves], scope, scope.span_of(subquery))
    return _with_columns(tree, columns), aggregate


def _read(
    node: exp.Expr, join: FromReader, scope: Scope, leaves: list[tuple[exp.Expr, tuple[Output, ...]]]
) -> SetLeaf | SetOperation:
    """The tree over numbered leaves; `vertex` is the number of the leaf until `_with_columns`."""
    node = node.unnest() if isinstance(node, exp.Subquery) else node
    if isinstance(node, exp.SetOperation):
        if isinstance(node, exp.Except) and not node.args.get("distinct", True):
            raise scope.fault("EXCEPT ALL cannot be estimated", "SKIMQL_SET_OPERATION", node, EXACT)
        left = _read(node.left, join, scope, leaves)
        right = _read(node.right, join, scope, leaves)
        return SetOperation(_OPERATORS[type(node)], left, right)
    first = len(join.occurrences)
    outputs = join.select_outputs(node, scope)
    if len(join.occurrences) != first + 1:
        message = "a set in a set expression must be of one table"
        raise scope.fault(message, "SKIMQL_SET_OF_JOINS", node, EXACT)
    leaves.append((node, outputs))
    return SetLeaf(first, ())


def _counted(select: exp.Select, scope: Scope) -> tuple[Aggregate, tuple[str, ...]]:
    """The one item of the outer SELECT, and what it counts of a set."""
    item = select.expressions[0]
    inner = item.this if isinstance(item, exp.Alias) else item
    bare = inner.unnest()
    distinct = bare.this if isinstance(bare, exp.Count) and isinstance(bare.this, exp.Distinct) else None
    if len(select.expressions) != 1 or distinct is None or not is_aggregate(bare):
        message = "only COUNT(DISTINCT ...) of a set expression can be estimated"
        raise scope.fault(message, "SKIMQL_SET_OPERATION", item, EXACT)
    name = item.alias if isinstance(item, exp.Alias) else default_name(inner, scope)
    counted = tuple(fragment_of(c.unnest(), scope).sql for c in distinct.expressions)
    return Aggregate("count_distinct", name, (), (), scope.span_of(inner)), counted


def _compares_rows(tree: SetLeaf | SetOperation) -> bool:
    """Whether INTERSECT or EXCEPT stands in it."""
    if isinstance(tree, SetLeaf):
        return False
    return tree.operator != "union" or _compares_rows(tree.left) or _compares_rows(tree.right)


def _check_whole_rows(select: exp.Select, names: list[str], scope: Scope) -> None:
    """INTERSECT and EXCEPT compare rows: values computed from them, or some of the columns, are not compared alike."""
    item = select.expressions[0]
    count = (item.this if isinstance(item, exp.Alias) else item).unnest()
    counted = [c.unnest() for c in count.this.expressions]
    plain = {c.name.lower() for c in counted if isinstance(c, exp.Column)}
    if not all(isinstance(c, exp.Column) for c in counted) or plain != {n.lower() for n in names}:
        message = "INTERSECT and EXCEPT compare whole rows, so all of their columns are counted as they are"
        raise scope.fault(message, "SKIMQL_SET_OPERATION", item, EXACT)


def _same_types(leaves: list[tuple[Output, ...]], scope: Scope, span: Span) -> None:
    """Sets of different types would be cast by Spark's own rules for set operations."""
    for column in zip(*leaves, strict=True):
        kinds = {_kind(o) for o in column} - {None}
        if len(kinds) > 1:
            shown = " and ".join(sorted(str(k) for k in kinds))
            message = f"the sets have values of different types ({shown})"
            raise scope.fault(message, "SKIMQL_KEY_TYPES", span, "CAST both to one type")


def _kind(output: Output) -> str | None:
    if bound_fragment(output).column is None or output.type is None:
        return None
    if is_padded(output.type):
        # Rows are compared as they are read: each CHAR with its own blanks.
        return "string"
    return "integer" if output.type in INTEGERS else output.type


def _with_columns(tree: SetLeaf | SetOperation, columns: list[tuple[str, ...]]) -> SetLeaf | SetOperation:
    if isinstance(tree, SetLeaf):
        return SetLeaf(tree.vertex, columns[tree.vertex])
    return replace(tree, left=_with_columns(tree.left, columns), right=_with_columns(tree.right, columns))
