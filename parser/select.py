"""SELECT text to a sqlglot tree (Spark dialect) in which every node knows its place.

sqlglot has offsets on names, literals and stars only. `SpannedParser` notes, for what each of its
expression methods returns, the first and last token consumed: so ``CAST(x AS INT)``, ``(a OR b)`` and ``x
IS NULL`` have whole spans; an operator's inner node spans its operands. The tree tells how an expression is
built; its *text* always comes from the user's own tokens (`fragment.py`), since sqlglot's rewriting changes
meanings (``to_date(s, 'yyyy-MM-dd')`` loses its format, ``log(x)`` becomes ``LN``, ``'a''b'`` a CONCAT).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from ..errors import ParseError, UnsupportedQuery
from .amounts import literal_fault
from .join_graph import Span
from .script import without_comments
from .syntax import BEHAVIORS

_PLACE = "skimql_tokens"


class SpannedParser(Spark.parser_class):  # type: ignore[misc, valid-type]
    """The Spark parser, noting the tokens of what it returns."""

    def expression(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        """As inherited; a name that is a value elsewhere, as in ``t.true``, has its place too."""
        node = super().expression(*args, **kwargs)
        if isinstance(node, exp.Identifier) and "start" not in node.meta:
            node.update_positions(self._prev)
        return node

    def _warn_unsupported(self) -> None:
        """Nothing on stderr: what is not read becomes an error, or goes to Spark."""

    def _parse_column_ops(self, this):  # type: ignore[no-untyped-def]
        if isinstance(this, exp.Boolean | exp.Null) and self._curr and self._curr.text == ".":
            # A table called `true` or `null`: before a dot the word is a name.
            name = exp.Identifier(this=self._prev.text)
            name.update_positions(self._prev)
            this = exp.Column(this=name)
        return super()._parse_column_ops(this)

    def _parse_join(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        """A join, read once for each place.

        After a join without ON sqlglot reads those behind it as nested, and again where that was wrong: 2^n times
        for n of them.
        """
        read = self.__dict__.setdefault("_joins_read", {})
        start = self._index
        if start in read:
            node, end = read[start]
            self._advance(end - self._index)
            return node
        node = super()._parse_join(*args, **kwargs)
        read[start] = node, self._index
        return node


def _noting(name: str):  # type: ignore[no-untyped-def]
    inherited = getattr(SpannedParser, name)

    def method(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        first = self._index
        # A left operand that was parsed before starts the expression; its own start is used then.
        before = args[0] if args else kwargs.get("this")
        node = inherited(self, *args, **kwargs)
        if isinstance(node, exp.Expr) and self._index > first and _PLACE not in node.meta:
            if isinstance(before, exp.Expr):
                first = min((n.meta[_PLACE][0] for n in before.walk() if _PLACE in n.meta), default=first)
            node.meta[_PLACE] = (first, self._index - 1)
        return node

    method.__name__ = name
    return method


for _name in (
    "_parse_atom",
    "_parse_boolean",
    "_parse_null",
    "_parse_primary",
    "_parse_unary",
    "_parse_column",
    "_parse_factor",
    "_parse_term",
    "_parse_bitwise",
    "_parse_range",
    "_parse_comparison",
    "_parse_equality",
    "_parse_conjunction",
    "_parse_disjunction",
    "_parse_expression",
    "_parse_table",
    "_parse_join",
    "_parse_select",
    "_parse_cte",
    "_parse_group",
    "_parse_having",
    "_parse_order",
    "_parse_ordered",
    "_parse_limit",
    "_parse_offset",
):
    setattr(SpannedParser, _name, _noting(_name))


@dataclass(frozen=True)
class Source:
    """A piece of SQL text with its tokens; spans of nodes are offsets in `sql`."""

    sql: str
    tokens: tuple[Token, ...]
    tree: exp.Expr

    @cached_property
    def index_at(self) -> dict[int, int]:
        """Token index by start offset."""
        return {t.start: i for i, t in enumerate(self.tokens)}

    def token_range(self, node: exp.Expr) -> tuple[int, int]:
        """Indices of the first and last token of `node`."""
        noted = node.meta.get(_PLACE)
        if noted is not None:
            return noted  # type: ignore[no-any-return]
        if "start" in node.meta:
            at = self.index_at[node.meta["start"]]
            return at, at
        parts = [self.token_range(child) for child in node.iter_expressions()]
        parts = [p for p in parts if p != (0, 0)]
        if not parts:
            return 0, 0
        return min(p[0] for p in parts), max(p[1] for p in parts)

    def span_of(self, node: exp.Expr) -> Span:
        """Where `node` stands in the text."""
        first, last = self.token_range(node)
        return self.span_between(first, last)

    def span_between(self, first: int, last: int) -> Span:
        """From the start of one token to the end of another."""
        return Span(self.tokens[first].start, self.tokens[last].end + 1)

    def text_of(self, node: exp.Expr) -> str:
        """The user's text of `node`."""
        span = self.span_of(node)
        return self.sql[span.start : span.end]


def parse_select(sql: str, shown: str | None = None) -> Source:
    """Parse one SELECT.

    Parameters
    ----------
    sql : str
        What Spark would run.
    shown : str, optional
        The whole statement that errors show, with the same offsets as `sql`; `sql` itself if not given.

    Raises
    ------
    ParseError
        With the place at which sqlglot stopped; code ``SKIMQL_DOUBLE_QUOTES`` if a double-quoted text stands
        where a name must.
    """
    return _parse(sql, sql if shown is None else shown, "SELECT")


def parse_expression(shown: str, span: Span) -> Source:
    """Parse the expression at `span` of a statement; offsets are those of the statement.

    Raises
    ------
    ParseError
        As `parse_select`.
    """
    return _parse(" " * span.start + shown[span.start : span.end], shown, "expression")


def _parse(sql: str, shown: str, what: str) -> Source:
    visible, _ = without_comments(sql)
    dialect = Spark()
    try:
        tokens = dialect.tokenize(visible)
    except TokenError as error:
        raise ParseError(str(error).split(":")[0], sql=shown, span=(0, len(sql))) from error
    if what == "SELECT" and (
        not tokens or tokens[0].text.upper() not in ("SELECT", "WITH", "(", "FROM", "VALUES")
    ):
        if [t.text.upper() for t in tokens[:1]] == ["EXPLAIN"]:
            raise ParseError(
                "a SELECT APPROXIMATE is explained by EXPLAIN or EXPLAIN ANALYZE; the other kinds are of Spark's plans",
                sql=shown,
                span=(tokens[0].start, tokens[min(1, len(tokens) - 1)].end + 1),
                hint="EXPLAIN SELECT APPROXIMATE ...",
            )
        # sqlglot would take it for some command, and say so in its log.
        raise ParseError(f"{what} is expected", sql=shown, span=(0, len(sql)), hint="SELECT ...")
    _refuse_long_numbers(tokens, shown)
    _refuse_pipes(tokens, shown)
    parser = SpannedParser(dialect=dialect)
    try:
        if what == "SELECT":
            trees = parser.parse(tokens, visible)
        else:
            trees = parser.parse_into(exp.Condition, tokens, visible)
    except SqlglotParseError as error:
        _refuse_double_quotes(tokens, visible, shown)
        raise _syntax_error(error, tokens, shown) from error
    except RecursionError as error:
        raise ParseError("the statement is nested too deeply", "SKIMQL_TOO_DEEP", sql=shown) from error
    if len(trees) != 1 or trees[0] is None:
        raise ParseError(f"{what} is expected", sql=shown, span=(0, len(sql)))
    _refuse_quoted_names(trees[0], tokens, visible, shown)
    _refuse_parameters(trees[0], tokens, shown)
    return Source(visible, tuple(tokens), trees[0])


def _syntax_error(error: SqlglotParseError, tokens: list[Token], shown: str) -> ParseError:
    """sqlglot's complaint at the token it names (its `col` is the token's last character)."""
    what = error.errors[0] if error.errors else {}
    line, column = what.get("line"), what.get("col")
    token = next((t for t in tokens if t.line == line and t.col == column), tokens[-1] if tokens else None)
    span = (token.start, token.end + 1) if token is not None else (0, len(shown))
    said = str(what.get("description") or "").rstrip(".")
    # sqlglot names its own classes where an operand is missing.
    reason = "something is missing here" if not said or "<" in said else said[0].lower() + said[1:]
    hint = "complete the expression, or see what Spark says: EXACT SELECT ..."
    if token is not None:
        at = tokens.index(token)
        if (
            token.text.upper() in ("ERROR", "WITHIN", "CONFIDENCE")
            or tokens[max(at - 1, 0)].text.upper() == "ERROR"
        ):
            hint = "ERROR WITHIN 5% CONFIDENCE 95%"
        near = (t.text for t in tokens[max(at - 1, 0) : at + 1] if t.text.lower() in _TAKEN_WORDS)
        word = next(near, None) or _case_without_when(tokens)
        if word is not None:
            hint = f"`{word}` in backticks if it is a column, or see what Spark says: EXACT SELECT ..."
        reason, hint = _unfinished(shown[token.start :].split()) or (reason, hint)
    return ParseError(f"syntax error: {reason}", "SKIMQL_SYNTAX_ERROR", shown, span, hint)


def _unfinished(words: list[str]) -> tuple[str, str] | None:
    """What is missing of the clause that the words begin with, and how it is written."""
    word, behind = words[0].upper(), words[1].strip(",;") if len(words) > 1 else ""
    match word:
        case "GROUP" | "ORDER" if behind.upper() != "BY" and behind not in _OPERATORS:
            return f"BY is missing behind {word}", f"{word} BY {behind or 'column'}"
        case "USING" if not behind:
            return "USING takes a method", "USING key_sample"
        case "BEHAVIOR" if behind.lower() in BEHAVIORS:
            return "BEHAVIOR takes a text", f"BEHAVIOR '{behind}'"
        case _:
            return None


def _case_without_when(tokens: list[Token]) -> str | None:
    """A CASE that something is compared with or computed from: Spark takes it for a column."""
    pairs = pairwise(tokens)
    return next((a.text for a, b in pairs if a.text.lower() == "case" and b.text in _OPERATORS), None)


_OPERATORS = frozenset(("=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>", "+", "*", "/", "%", ",", ")"))

# Words that Spark takes as names of columns, and sqlglot where they are qualified only.
_TAKEN_TEXT = """
    join on from using where for case group order having limit select union left right full cross
    natural inner outer when then else end and or not in is as by with distinct all between exists like
"""
_TAKEN_WORDS = frozenset(_TAKEN_TEXT.split())


def _refuse_pipes(tokens: list[Token], shown: str) -> None:
    """Refuse pipe syntax: sqlglot takes the WHERE of ``SELECT ... |> WHERE`` for one of that SELECT; it is not."""
    pipe = next((t for t in tokens if t.token_type == TokenType.PIPE_GT), None)
    if pipe is not None:
        span = (pipe.start, pipe.end + 1)
        message = "pipe syntax is not read"
        raise UnsupportedQuery(message, "SKIMQL_UNSUPPORTED_STATEMENT", shown, span, "EXACT SELECT ...")


def _refuse_long_numbers(tokens: list[Token], shown: str) -> None:
    for token in tokens:
        if token.token_type == TokenType.NUMBER:
            why = literal_fault(token.text)
            if why:
                span = (token.start, token.end + 1)
                raise ParseError(why, "SKIMQL_SYNTAX_ERROR", shown, span, "a number that Spark can read")


def _refuse_parameters(tree: exp.Expr, tokens: list[Token], shown: str) -> None:
    """``:name`` and ``?`` stand for values that nobody has given."""
    if not any(True for _ in tree.find_all(exp.Placeholder, exp.Parameter)):
        return
    for before, token in pairwise([*tokens, tokens[-1]]):
        if before.text == "?" or (before.text in (":", "@") and token is not before):
            end = before.end if before.text == "?" else token.end
            raise UnsupportedQuery(
                f"{shown[before.start : end + 1]} is a parameter, and SkimQL's statements take none",
                "SKIMQL_PARAMETER",
                shown,
                (before.start, end + 1),
                "write its value",
            )


def _refuse_double_quotes(tokens: list[Token], sql: str, shown: str) -> None:
    """A syntax error at or beside a double-quoted text is most likely a name in the wrong quotes."""
    for token in tokens:
        if sql[token.start] == '"':
            raise _double_quotes(token.text, (token.start, token.end + 1), shown)


def _refuse_quoted_names(tree: exp.Expr, tokens: list[Token], sql: str, shown: str) -> None:
    """sqlglot takes ``t."x"`` and ``AS "x"`` for names, where Spark has a syntax error."""
    for before, token in pairwise(tokens):
        if before.text == "." and sql[token.start] in "\"'":
            raise _double_quotes(token.text, (token.start, token.end + 1), shown)
    for name in tree.find_all(exp.Identifier):
        start = name.meta.get("start")
        if start is not None and sql[start] in "\"'":
            raise _double_quotes(name.name, (start, name.meta["end"] + 1), shown)


def _double_quotes(name: str, span: tuple[int, int], shown: str) -> ParseError:
    quoted = "`" + name.replace("`", "``") + "`"
    return ParseError(
        "quotes hold text here, not a name",
        "SKIMQL_DOUBLE_QUOTES",
        shown,
        span,
        f"write {quoted} in backticks",
    )
