"""Our statements and clauses, read by lark from ``grammar/*.lark``; everything else is passed to Spark.

`split_statements` cuts a script at its semicolons, `parse_statement` reads one statement. A SELECT is not
parsed here: its text is handed on with our words blanked out, so that offsets in `select_sql` are offsets
in `sql`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib import resources

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from ..errors import ParseError, UnsupportedQuery
from .join_graph import Accuracy, Span

BEHAVIORS = ("do_nothing", "local_omit", "strict", "run_on_full_table", "partial_run_on_base_table")
METHODS = (
    "hash",
    "agms",
    "skimmed",
    "convolution",
    "key_sample",
    "two_level",
    "distinct",
    "join_distinct",
)
FORMATS = ("text", "json", "mermaid")


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a script: its text, where it starts, and whether a semicolon ended it."""

    sql: str
    start: int
    terminated: bool


@dataclass(frozen=True, slots=True)
class ApproximateSelect:
    """A SELECT to be estimated.

    `select_sql` is `sql` with APPROXIMATE and our clauses blanked: Spark can run it, and offsets agree.
    `clause_spans` tells where each clause stands, by its name (``error``, ``method``, ``options``, ...).
    """

    sql: str
    select_sql: str
    accuracy: Accuracy = field(default_factory=Accuracy)
    method: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    clause_spans: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExactSelect:
    """``EXACT SELECT``: run by Spark as it is; accuracy clauses behind it are blanked."""

    sql: str
    select_sql: str


@dataclass(frozen=True, slots=True)
class EstimateRows:
    """``ESTIMATE ROWS FOR SELECT ...``: how many rows would the query give."""

    sql: str
    select: ApproximateSelect


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN [FORMAT f]`` of one of our queries."""

    sql: str
    format: str
    statement: ApproximateSelect | ExactSelect | EstimateRows


@dataclass(frozen=True, slots=True)
class SetOption:
    """``SET skimql.name = value``; `value` is the text without its quotes."""

    sql: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class PassThrough:
    """Not ours: goes to Spark unchanged."""

    sql: str


Statement = ApproximateSelect | ExactSelect | EstimateRows | Explain | SetOption | PassThrough


def split_statements(text: str) -> tuple[StatementText, ...]:
    """Cut a script at the semicolons outside of text, quoted names and comments.

    Pieces of blanks and comments alone are dropped; the others keep their comments.

    Raises
    ------
    ParseError
        If a comment is not closed.

    Notes
    -----
    Comments nest, as in Spark. Time linear in the text.
    """
    visible, semicolons = without_comments(text)
    cuts = [*semicolons, len(text)]
    pieces = []
    start = 0
    for cut in cuts:
        shown = visible[start:cut]
        if shown.strip():
            skipped = len(shown) - len(shown.lstrip())
            own = text[start:cut]
            lead = min(skipped, len(own) - len(own.lstrip()))
            pieces.append(StatementText(own[lead:].rstrip(), start + lead, cut < len(text)))
        start = cut + 1
    return tuple(pieces)


def parse_statement(text: str) -> Statement:
    """Read one statement.

    Raises
    ------
    ParseError
        If the text holds one of our words and does not go on as it must, or holds several statements.
    UnsupportedQuery
        If APPROXIMATE or an accuracy clause stands inside a subquery.
    """
    visible, semicolons = without_comments(text)
    if semicolons and visible[semicolons[0] + 1 :].strip():
        raise ParseError(
            "several statements where one is expected",
            "SKIMQL_SEVERAL_STATEMENTS",
            text,
            (semicolons[0], semicolons[0] + 1),
            "run them one after the other, or as a script",
        )
    for place in semicolons:
        visible = _blank(visible, Span(place, place + 1))
    head = _head(visible)
    if head == "SET":
        return _set_option(text, visible)
    if head in {"SELECT", "WITH", "EXACT", "EXPLAIN", "ESTIMATE"}:
        return _select_statement(text, visible)
    return PassThrough(text)


@cache
def _grammar(name: str, lexer: str = "contextual") -> Lark:
    source = resources.files("skimql.grammar").joinpath(f"{name}.lark").read_text("utf-8")
    return Lark(source, parser="lalr", lexer=lexer)


def without_comments(text: str) -> tuple[str, list[int]]:
    """The text with its comments blanked, and the offsets of the semicolons that end statements."""
    try:
        tree = _grammar("script").parse(text)
    except UnexpectedInput as error:
        stack = error.interactive_parser.parser_state.value_stack
        opened = next(t for t in stack if isinstance(t, Token) and t.type == "COMMENT_OPEN")
        raise ParseError(
            "the comment is not closed",
            "SKIMQL_OPEN_COMMENT",
            text,
            (_start(opened), _start(opened) + 2),
            "close it with */ (comments nest)",
        ) from error
    semicolons = []
    for piece in tree.children:
        if isinstance(piece, Tree):
            tokens = list(piece.scan_values(lambda t: isinstance(t, Token)))
            text = _blank(text, Span(_start(tokens[0]), _end(tokens[-1])))
        elif piece.type == "LINE_COMMENT":
            text = _blank(text, Span(_start(piece), _end(piece)))
        elif piece.type == "SEMICOLON":
            semicolons.append(_start(piece))
    return text, semicolons


def _blank(text: str, span: Span) -> str:
    """The text with blanks at `span`; line ends stay, so that lines keep their numbers."""
    blanks = "".join(c if c in "\r\n" else " " for c in text[span.start : span.end])
    return text[: span.start] + blanks + text[span.end :]


def _start(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos


def _end(token: Token) -> int:
    assert token.end_pos is not None
    return token.end_pos


def _tokens(tree: Tree[Token]) -> Iterator[Token]:
    for child in tree.children:
        if isinstance(child, Token):
            yield child
        else:
            yield from _tokens(child)


def _head(visible: str) -> str:
    """The first word, in capitals."""
    first = next(iter(_grammar("clauses", "basic").lex(visible)), None)
    if first is None:
        return ""
    return "ESTIMATE" if first.type == "ESTIMATE_ROWS" else first.value.upper()


def _set_option(text: str, visible: str) -> Statement:
    """``SET skimql.name = value``, or Spark's own SET."""
    try:
        tree = _grammar("settings").parse(visible)
    except UnexpectedInput as error:
        words = visible.split(None, 2)
        if len(words) > 1 and words[1].lower().startswith("skimql."):
            place = min(getattr(error, "pos_in_stream", None) or len(text.rstrip()), len(text))
            raise ParseError(
                "SET skimql.<name> needs '=' and one value",
                sql=text,
                span=(place, place + 1),
                hint="SET skimql.error = 0.05",
            ) from error
        return PassThrough(text)
    _, name, value = tree.children
    assert isinstance(name, Token)
    assert isinstance(value, Tree)
    return SetOption(text, name.value.lower(), _plain_value(value))


def _plain_value(value: Tree[Token]) -> str:
    """An option's value: text without its quotes, words and numbers as they stand."""
    tokens = list(_tokens(value))
    if tokens[0].type == "TEXT":
        return _unquote(tokens[0].value)
    separator = "" if tokens[0].type == "SIGN" else " "
    return separator.join(t.value for t in tokens)


def _unquote(literal: str) -> str:
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]
    body = literal[1:-1].replace(quote * 2, quote)
    return body.replace("\\" + quote, quote).replace("\\\\", "\\")


def _select_statement(text: str, visible: str) -> Statement:
    grammar = _grammar("clauses", "basic")
    try:
        tree = grammar.parse(visible)
    except UnexpectedInput as error:
        tokens = list(grammar.lex(visible))
        if not _is_ours(tokens):
            return PassThrough(text)
        _refuse_open_quotes(text, tokens)
        raise _clause_error(text, error) from error
    (inner,) = tree.children
    assert isinstance(inner, Tree)
    return _statement_of(text, inner)


def _is_ours(tokens: list[Token]) -> bool:
    """Whether the words that only we have stand outside of parentheses."""
    depth = 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        depth += {"OPEN": 1, "CLOSE": -1}.get(token.type, 0)
        if token.type in {"EXACT", "ESTIMATE_ROWS"}:
            return True
        if depth == 0 and token.type in {"ERROR_WITHIN", "WITH_ERROR"}:
            return True
        if depth == 0 and token.type == "APPROXIMATE" and before is not None and before.type == "SELECT":
            return True
    return False


def _clause_error(text: str, error: UnexpectedInput) -> ParseError:
    """What lark did not expect, in the user's words."""
    if not isinstance(error, UnexpectedToken) or error.token.type == "$END":
        place = len(text.rstrip().rstrip(";").rstrip())
        return ParseError(
            "the statement ends too early",
            sql=text,
            span=(place, place + 1),
            hint="complete the last clause or close the last parenthesis",
        )
    token = error.token
    span = (_start(token), _end(token))
    if token.type == "CLOSE":
        return ParseError("this parenthesis closes nothing", sql=text, span=span, hint="remove it")
    if {"WORD", "SELECT"} <= error.accepts or "ERROR_WITHIN" not in error.accepts:
        expected = _EXPECTED.get(next(iter(sorted(error.accepts & _EXPECTED.keys())), ""), "")
        hint = f"{expected} here" if expected else "SELECT APPROXIMATE ... ERROR WITHIN 5% CONFIDENCE 95%"
        return ParseError(f"{token.value!r} is not expected here", sql=text, span=span, hint=hint)
    return ParseError(
        f"{token.value!r} stands behind a clause that must come last",
        sql=text,
        span=span,
        hint="write ERROR WITHIN, USING, OPTIONS, SEED and BEHAVIOR behind the whole SELECT",
    )


_EXPECTED = {
    "NUMBER": "a number, such as 5% or 0.05,",
    "TEXT": "a text such as 'strict'",
    "EQUALS": "name = value",
}


def _statement_of(text: str, tree: Tree[Token]) -> Statement:
    if tree.data == "query":
        select = _approximate(text, tree)
        return PassThrough(text) if select is None else select
    if tree.data == "exact":
        word, query = tree.children
        assert isinstance(word, Token)
        assert isinstance(query, Tree)
        return ExactSelect(text, _select_text(text, query, word))
    if tree.data == "estimate":
        word, query = tree.children
        assert isinstance(word, Token)
        assert isinstance(query, Tree)
        return EstimateRows(text, _read_query(text, query, word))
    *words, query = tree.children
    assert isinstance(query, Tree)
    return _explain(text, [w for w in words if isinstance(w, Token)], query)


def _explain(text: str, words: list[Token], query: Tree[Token]) -> Statement:
    shape = words[2].value.lower() if len(words) == 3 else "text"
    inner = _statement_of(text, query)
    if isinstance(inner, PassThrough):
        return PassThrough(text)
    assert isinstance(inner, ApproximateSelect | ExactSelect | EstimateRows)
    if shape not in FORMATS:
        raise ParseError(
            f"there is no format {words[2].value!r}",
            sql=text,
            span=(_start(words[2]), _end(words[2])),
            hint="EXPLAIN FORMAT TEXT, JSON or MERMAID",
        )
    return Explain(text, shape, _without_words(inner, words))


def _without_words(
    statement: ApproximateSelect | ExactSelect | EstimateRows, words: list[Token]
) -> ApproximateSelect | ExactSelect | EstimateRows:
    """The explained statement with EXPLAIN [FORMAT f] blanked from what Spark would run."""
    select = statement.select if isinstance(statement, EstimateRows) else statement
    select_sql = select.select_sql
    for word in words:
        select_sql = _blank(select_sql, Span(_start(word), _end(word)))
    select = replace(select, select_sql=select_sql)
    if isinstance(statement, EstimateRows):
        assert isinstance(select, ApproximateSelect)
        return replace(statement, select=select)
    return select


def _approximate(text: str, query: Tree[Token]) -> ApproximateSelect | None:
    """The query as one to be estimated, or None if nothing in it asks for that."""
    _refuse_inner_words(text, query)
    marked = any(True for _ in _approximate_words(query))
    bounded = any(c.data == "error_within" for c in query.children if isinstance(c, Tree))
    return _read_query(text, query) if marked or bounded else None


def _approximate_words(query: Tree[Token]) -> Iterator[Token]:
    """Each APPROXIMATE that follows a SELECT outside of parentheses."""
    body = query.children[0]
    assert isinstance(body, Tree)
    before = None
    for item in body.children:
        assert isinstance(item, Tree)
        token = item.children[0] if item.data == "item" else None
        if isinstance(token, Token) and token.type == "APPROXIMATE" and before == "SELECT":
            yield token
        before = token.type if isinstance(token, Token) else None


def _refuse_inner_words(text: str, query: Tree[Token]) -> None:
    """APPROXIMATE and accuracy belong to the whole query, not to a subquery."""
    body = query.children[0]
    assert isinstance(body, Tree)
    for group in body.find_data("group"):
        before = None
        for token in _tokens(group):
            inner = token.type == "APPROXIMATE" and before == "SELECT"
            if inner or token.type in {"ERROR_WITHIN", "WITH_ERROR"}:
                raise UnsupportedQuery(
                    f"{' '.join(token.value.upper().split())} inside a subquery",
                    "SKIMQL_INNER_APPROXIMATE",
                    text,
                    (_start(token), _end(token)),
                    "write it once, at the outermost SELECT",
                )
            before = token.type


def _select_text(text: str, query: Tree[Token], *words: Token) -> str:
    """The SELECT as Spark runs it: our words and clauses, the last semicolon and blanks behind removed."""
    body = query.children[0]
    for word in (*words, *_approximate_words(query)):
        text = _blank(text, Span(_start(word), _end(word)))
    assert isinstance(body, Tree)
    return text[: _end(list(_tokens(body))[-1])]


def _read_query(text: str, query: Tree[Token], *words: Token) -> ApproximateSelect:
    _refuse_inner_words(text, query)
    _refuse_open_quotes(text, _tokens(query))
    clauses = _Clauses(text)
    for clause in query.children[1:]:
        assert isinstance(clause, Tree)
        clauses.read(clause)
    return ApproximateSelect(
        text,
        _select_text(text, query, *words),
        Accuracy(clauses.error, clauses.confidence, clauses.behavior),
        clauses.method,
        clauses.options,
        clauses.seed,
        clauses.spans,
    )


def _refuse_open_quotes(text: str, tokens: Iterable[Token]) -> None:
    for token in tokens:
        if token.type == "OPEN_QUOTE":
            what = "quoted name" if token.value == "`" else "text"
            raise ParseError(
                f"the {what} is not closed",
                "SKIMQL_OPEN_QUOTE",
                text,
                (_start(token), len(text.rstrip())),
                f"close it with {token.value}",
            )


class _Clauses:
    """What the clauses behind a SELECT say; each may stand once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.error: float | None = None
        self.confidence: float | None = None
        self.behavior: str | None = None
        self.method: str | None = None
        self.options: dict[str, str] = {}
        self.seed: int | None = None
        self.spans: dict[str, Span] = {}

    def read(self, clause: Tree[Token]) -> None:
        tokens = list(_tokens(clause))
        span = Span(_start(tokens[0]), _end(tokens[-1]))
        name = str(clause.data)
        self._once(name, span)
        getattr(self, f"_{name}")(clause, tokens)

    def _once(self, name: str, span: Span) -> None:
        if name in self.spans:
            raise self._fault(f"{name.replace('_', ' ').upper()} is given twice", span, "keep one of them")
        self.spans[name] = span

    def _fault(self, message: str, span: Span, hint: str) -> ParseError:
        return ParseError(message, sql=self.text, span=(span.start, span.end), hint=hint)

    def _error_within(self, clause: Tree[Token], tokens: list[Token]) -> None:
        error, *confidence = clause.find_data("amount")
        first, *rest = sorted([error, *confidence], key=lambda a: _start(next(_tokens(a))))
        self.error = self._fraction(first, "the error", "ERROR WITHIN 5%")
        if rest:
            at = next(t for t in tokens if t.type == "CONFIDENCE")
            self._once("confidence", Span(_start(at), _end(tokens[-1])))
            self.confidence = self._fraction(rest[0], "the confidence", "CONFIDENCE 95%")

    def _confidence(self, clause: Tree[Token], tokens: list[Token]) -> None:
        self.confidence = self._fraction(next(clause.find_data("amount")), "the confidence", "CONFIDENCE 95%")

    def _fraction(self, amount: Tree[Token], what: str, hint: str) -> float:
        """A share between 0 and 1, written 5% or 0.05."""
        tokens = list(_tokens(amount))
        value = float(tokens[0].value) / (100 if len(tokens) == 2 else 1)
        if not 0 < value < 1:
            span = Span(_start(tokens[0]), _end(tokens[-1]))
            raise self._fault(f"{what} must lie between 0 and 1 (0% and 100%)", span, hint)
        return value

    def _behavior(self, clause: Tree[Token], tokens: list[Token]) -> None:
        self.behavior = self._choice(tokens[1], _unquote(tokens[1].value), BEHAVIORS, "behavior")

    def _method(self, clause: Tree[Token], tokens: list[Token]) -> None:
        self.method = self._choice(tokens[1], tokens[1].value, METHODS, "method")

    def _choice(self, token: Token, value: str, known: tuple[str, ...], what: str) -> str:
        if value.lower() in known:
            return value.lower()
        near = get_close_matches(value.lower(), known, 1)
        hint = f"{near[0]}, or another of " if near else "one of "
        rest = ", ".join(k for k in known if k not in near)
        raise self._fault(f"there is no {what} {value!r}", Span(_start(token), _end(token)), hint + rest)

    def _options(self, clause: Tree[Token], tokens: list[Token]) -> None:
        for option in clause.find_data("option"):
            name, _, value = option.children
            assert isinstance(name, Token)
            assert isinstance(value, Tree)
            if name.value.lower() in self.options:
                span = Span(_start(name), _end(name))
                raise self._fault(f"option {name.value!r} is given twice", span, "keep one of them")
            self.options[name.value.lower()] = _plain_value(value)

    def _seed(self, clause: Tree[Token], tokens: list[Token]) -> None:
        number = tokens[1]
        if not number.value.isdigit() or int(number.value) >= 2**63:
            span = Span(_start(number), _end(number))
            raise self._fault("the seed must be a whole number below 2^63", span, "SEED 7")
        self.seed = int(number.value)
