"""Expressions over the columns that their names mean, in the user's own words."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from ..errors import ParseError
from .fragment import Fragment, Ref, spaced
from .scope import EXACT, Output, Scope, columns_of, walk_outside_subqueries
from .subquery import refuse_outer_names

NONDETERMINISTIC = frozenset(
    [
        "rand",
        "randn",
        "random",
        "randstr",
        "uniform",
        "uuid",
        "shuffle",
        "monotonically_increasing_id",
        "spark_partition_id",
    ]
)
GENERATORS = frozenset(
    [
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
    ]
)


UNITS = frozenset(
    [
        *(
            "YEAR",
            "YEARS",
            "QUARTER",
            "QUARTERS",
            "MONTH",
            "MONTHS",
            "WEEK",
            "WEEKS",
            "DAY",
            "DAYS",
            "HOUR",
            "HOURS",
        ),
        *(
            "MINUTE",
            "MINUTES",
            "SECOND",
            "SECONDS",
            "MILLISECOND",
            "MILLISECONDS",
            "MICROSECOND",
            "MICROSECONDS",
        ),
        *("DAYOFWEEK", "DAYOFYEAR", "DOW", "DOY", "EPOCH"),
    ]
)


def fragment_of(node: exp.Expr, scope: Scope) -> Fragment:
    """The user's text of `node` with every column replaced by what it means.

    Raises
    ------
    UnsupportedQuery
        If the expression holds an aggregate, a window function, a function whose value changes from call
        to call or makes rows, or a subquery that reads the tables around it.
    """
    _refuse_parts(node, scope)
    first, last = scope.source.token_range(node)
    if last == 0 and scope.source.tokens[0].text.upper() in ("SELECT", "WITH"):
        # The statement's own first word is the place of what sqlglot gives none.
        message = f"{node.sql(dialect='spark')} cannot stand here"
        raise scope.fault(message, "SKIMQL_UNSUPPORTED_FUNCTION", node, EXACT)
    replaced: dict[int, tuple[int, Fragment]] = {}
    for column in columns_of(node):
        output, used = scope.resolve(column)
        places = [p.meta["start"] for p in column.parts[:used] if "start" in p.meta]
        if len(places) < used:
            # A word that sqlglot takes for something else first: t.true, t.$x.
            message = f"{scope.source.text_of(column)} cannot be read as a column"
            raise scope.fault(message, "SKIMQL_SYNTAX_ERROR", column, "the name in backticks", ParseError)
        start, end = scope.source.index_at[places[0]], scope.source.index_at[places[-1]]
        replaced[start] = (end, bound_fragment(output))
    subqueries = [
        scope.source.token_range(q) for q in walk_outside_subqueries(node) if isinstance(q, exp.Query)
    ]
    _refuse_stray_names(node, replaced, subqueries, scope)
    pieces: list[str | Ref] = []
    skip_to = -1
    for index, text in spaced(scope.source.tokens, scope.source.sql, first, last, subqueries):
        if index <= skip_to:
            continue
        if index in replaced:
            skip_to, meaning = replaced[index]
            pieces.append(" " if text.startswith(" ") else "")
            pieces.extend(meaning.wrapped().pieces)
        else:
            pieces.append(text)
    return Fragment(_merged(pieces), _is_simple(node, first, scope))


def _refuse_stray_names(
    node: exp.Expr,
    replaced: dict[int, tuple[int, Fragment]],
    subqueries: list[tuple[int, int]],
    scope: Scope,
) -> None:
    """Refuse a name that looks like a column and that sqlglot does not show as one.

    ``date_trunc(f, ts)`` reads its unit from column f in Spark; sqlglot takes f for the unit itscope. Left as
    it stands, the name would be looked up in one table without our knowing.
    """
    tokens = scope.source.tokens
    first, last = scope.source.token_range(node)
    covered = {i for start, (end, _) in replaced.items() for i in range(start, end + 1)}
    covered |= {i for start, end in subqueries for i in range(start, end + 1)}
    own = {p.name.lower() for f in node.find_all(exp.Lambda) for p in f.expressions}
    for index in range(first, last + 1):
        name = tokens[index].text.lower()
        if index in covered or tokens[index].token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
            continue
        before = tokens[index - 1].text.upper() if index else ""
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if name in own or name.upper() in UNITS or before in (".", "AS", "COLLATE") or after in ("(", "=>"):
            continue
        if scope.find(name) or (after == "." and any(r.answers_to((name,)) for r in scope.relations)):
            span = scope.place or scope.source.span_between(index, index)
            message = f"{tokens[index].text} cannot be read as a column here"
            raise scope.fault(message, "SKIMQL_UNSUPPORTED_FUNCTION", span, EXACT)


def _is_simple(node: exp.Expr, first: int, scope: Scope) -> bool:
    """Whether the text needs no parentheses as an operand; sqlglot adds some that are not in the text."""
    if isinstance(node, exp.Paren):
        return bool(scope.source.tokens[first].text == "(")
    operand = isinstance(node, exp.Column | exp.Literal | exp.Func | exp.Boolean | exp.Null)
    return operand and not isinstance(node, exp.Connector | exp.Binary)


def _refuse_parts(node: exp.Expr, scope: Scope) -> None:
    for inner in walk_outside_subqueries(node):
        if isinstance(inner, exp.Query):
            refuse_outer_names(inner, scope)
        elif isinstance(inner, exp.Window):
            message = "a window function cannot be estimated"
            raise scope.fault(message, "SKIMQL_WINDOW", inner, EXACT)
        elif isinstance(inner, exp.Star):
            raise scope.fault("* cannot stand here", "SKIMQL_NOT_AGGREGATED", inner, "name the columns")
        elif isinstance(inner, exp.AggFunc):
            message = "an aggregate cannot stand here"
            raise scope.fault(message, "SKIMQL_MISPLACED_AGGREGATE", inner, EXACT)
    first, last = scope.source.token_range(node)
    for index in range(first, last):
        token = scope.source.tokens[index]
        called = token.text.lower() if scope.source.tokens[index + 1].text == "(" else ""
        if called in NONDETERMINISTIC | GENERATORS:
            why = "makes rows" if called in GENERATORS else "is different at every call"
            span = scope.place or scope.source.span_between(index, index)
            message = f"{called}() {why} and cannot be estimated"
            raise scope.fault(message, "SKIMQL_UNSUPPORTED_FUNCTION", span, EXACT)


def bound_fragment(output: Output) -> Fragment:
    """What an output is, over base columns."""
    if isinstance(output.bound, Ref):
        return Fragment((output.bound,), simple=True)
    node, scope = output.bound
    return fragment_of(node, scope)


def _merged(pieces: list[str | Ref]) -> tuple[str | Ref, ...]:
    """Neighbouring texts joined, empty ones dropped: equal expressions get equal pieces."""
    result: list[str | Ref] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        elif piece != "":
            result.append(piece)
    return tuple(result)
