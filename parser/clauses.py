"""A SELECT with our clauses behind it, read by ``grammar/clauses.lark``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice

from lark import Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from ..errors import ParseError, UnsupportedQuery
from .amounts import BadNumber, byte_count, meant_percent, share, whole
from .join_graph import Accuracy, Span
from .lexing import blank, end_of, grammar, plain_value, start_of, tokens_of, unquote
from .syntax import (
    BEHAVIORS,
    FORMATS,
    METHODS,
    ApproximateSelect,
    EstimateRows,
    ExactSelect,
    Explain,
    PassThrough,
    Statement,
)

# A SELECT of more words than this takes more than ten seconds to read.
MOST_WORDS = 40_000
_WORD = re.compile(
    r"""'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"|`[^`]*`|\w+|[^\w\s]""", re.DOTALL
)
_OURS = re.compile(
    r"\bAPPROX(IMATE)?\b|\bERROR\s+WITHIN\b|\bWITH\s+ERROR\b|\bESTIMATE\s+ROWS\b", re.IGNORECASE
)
_EXACT = re.compile(r"\s*EXACT\b(?=\s+(SELECT|WITH)\b)", re.IGNORECASE)


def read_select(text: str, visible: str) -> Statement:
    """A SELECT, EXACT SELECT, ESTIMATE ROWS or EXPLAIN; `visible` is its text without comments.

    Raises
    ------
    ParseError, UnsupportedQuery
        As `parse_statement`; ``SKIMQL_TOO_LONG`` for one of ours with more than `MOST_WORDS` words.
    """
    if (
        len(visible) > MOST_WORDS
        and sum(1 for _ in islice(_WORD.finditer(visible), MOST_WORDS + 1)) > MOST_WORDS
    ):
        return _read_long(text, visible)
    reader = grammar("clauses", "basic")
    try:
        tree = reader.parse(visible)
    except UnexpectedInput as error:
        tokens = list(reader.lex(visible))
        if not _is_ours(tokens):
            return PassThrough(text)
        _refuse_open_quotes(text, tokens)
        raise _clause_error(text, error) from error
    (inner,) = tree.children
    assert isinstance(inner, Tree)
    return _statement_of(text, inner)


def _read_long(text: str, visible: str) -> Statement:
    """A text too long to be taken apart: Spark's, or refused."""
    exact = _EXACT.match(visible)
    if exact is not None:
        return ExactSelect(text, blank(text, Span(0, exact.end())))
    found = _OURS.search(visible)
    if found is None:
        return PassThrough(text)
    raise ParseError(
        f"the statement has more than {MOST_WORDS:,} words",
        "SKIMQL_TOO_LONG",
        text,
        found.span(),
        "k IN (SELECT k FROM t) for a long list of values, or EXACT SELECT ...",
    )


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
    span = (start_of(token), end_of(token))
    if token.type == "CLOSE":
        return ParseError("this parenthesis closes nothing", sql=text, span=span, hint="remove it")
    if {"WORD", "SELECT"} <= error.accepts or "ERROR_WITHIN" not in error.accepts:
        expected = _EXPECTED.get(next(iter(sorted(error.accepts & _EXPECTED.keys())), ""), "")
        hint = f"{expected} here" if expected else "SELECT APPROXIMATE ... ERROR WITHIN 5% CONFIDENCE 95%"
        return ParseError(f"{token.value!r} is not expected here", sql=text, span=span, hint=hint)
    if token.value.upper() == "BEHAVIOR" and text[end_of(token) :].lstrip()[:1] not in ("'", '"'):
        return ParseError("BEHAVIOR takes a text", sql=text, span=span, hint="BEHAVIOR 'strict'")
    if _SIZE_BEFORE.search(text, 0, start_of(token)) is not None:
        return ParseError(
            f"{token.value!r} is no unit of a size",
            sql=text,
            span=span,
            hint="SIZE 64 KB; B, KB, MB and GB are units",
        )
    if token.value.upper() == "CONFIDENCE":
        return ParseError("CONFIDENCE takes a number", sql=text, span=span, hint="CONFIDENCE 95%")
    return ParseError(
        f"{token.value!r} stands behind a clause that must come last",
        sql=text,
        span=span,
        hint="write ERROR WITHIN, USING, SIZE, OPTIONS, SEED and BEHAVIOR behind the whole SELECT",
    )


_SIZE_BEFORE = re.compile(r"\bSIZE\s+[.\d][\w.]*\s*\Z", re.IGNORECASE)
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
    format_word = words[-1] if len(words) > 2 else None
    shape = format_word.value.lower() if format_word is not None else "text"
    analyze = len(words) in (2, 4)
    inner = _statement_of(text, query)
    if isinstance(inner, PassThrough):
        return PassThrough(text)
    assert isinstance(inner, ApproximateSelect | ExactSelect | EstimateRows)
    if format_word is not None and shape not in FORMATS:
        raise ParseError(
            f"there is no format {format_word.value!r}",
            sql=text,
            span=(start_of(format_word), end_of(format_word)),
            hint="EXPLAIN FORMAT TEXT, JSON, MERMAID or SVG",
        )
    return Explain(text, shape, _without_words(inner, words), analyze)


def _without_words(
    statement: ApproximateSelect | ExactSelect | EstimateRows, words: list[Token]
) -> ApproximateSelect | ExactSelect | EstimateRows:
    """The explained statement with EXPLAIN [ANALYZE] [FORMAT f] blanked from what Spark would run."""
    select = statement.select if isinstance(statement, EstimateRows) else statement
    select_sql = select.select_sql
    for word in words:
        select_sql = blank(select_sql, Span(start_of(word), end_of(word)))
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
    groups = (g for g in body.children if isinstance(g, Tree) and g.data == "group")
    for group in groups:
        before = None
        for token in tokens_of(group):
            inner = token.type == "APPROXIMATE" and before == "SELECT"
            if inner or token.type in {"ERROR_WITHIN", "WITH_ERROR"}:
                raise UnsupportedQuery(
                    f"{' '.join(token.value.upper().split())} inside a subquery",
                    "SKIMQL_INNER_APPROXIMATE",
                    text,
                    (start_of(token), end_of(token)),
                    "write it once, at the outermost SELECT",
                )
            before = token.type


def _select_text(text: str, query: Tree[Token], *words: Token) -> str:
    """The SELECT as Spark runs it: our words and clauses, the last semicolon and blanks behind removed."""
    body = query.children[0]
    for word in (*words, *_approximate_words(query)):
        text = blank(text, Span(start_of(word), end_of(word)))
    assert isinstance(body, Tree)
    return text[: end_of(list(tokens_of(body))[-1])]


def _counting_exactly(select_sql: str, query: Tree[Token]) -> str:
    """APPROX_COUNT_DISTINCT(x) as COUNT(DISTINCT x), in the same number of characters.

    Its own estimate of Spark's would be taken for the exact answer otherwise. Subqueries stay as they are.
    """
    body = query.children[0]
    assert isinstance(body, Tree)
    subqueries: list[bool] = []
    tokens = list(tokens_of(body))
    for token, after, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.type == "OPEN":
            subqueries.append(after.type == "SELECT")
        elif token.type == "CLOSE" and subqueries:
            subqueries.pop()
        if token.value.lower() == "approx_count_distinct" and after.type == "OPEN" and not any(subqueries):
            counted = "COUNT(" if behind.value.lower() == "distinct" else "COUNT(DISTINCT"
            start, end = start_of(token), end_of(after)
            select_sql = select_sql[:start] + counted.ljust(end - start) + select_sql[end:]
    return select_sql


def _read_query(text: str, query: Tree[Token], *words: Token) -> ApproximateSelect:
    _refuse_inner_words(text, query)
    _refuse_open_quotes(text, tokens_of(query))
    clauses = Clauses(text)
    for clause in query.children[1:]:
        assert isinstance(clause, Tree)
        clauses.read(clause)
    return ApproximateSelect(
        text,
        _counting_exactly(_select_text(text, query, *words), query),
        Accuracy(clauses.error, clauses.confidence, clauses.behavior),
        clauses.method,
        clauses.options,
        clauses.seed,
        clauses.size_bytes,
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
                (start_of(token), len(text.rstrip())),
                f"close it with {token.value}",
            )


class Clauses:
    """What the clauses behind a SELECT say; each may stand once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.error: float | None = None
        self.confidence: float | None = None
        self.behavior: str | None = None
        self.method: str | None = None
        self.options: dict[str, str] = {}
        self.seed: int | None = None
        self.size_bytes: int | None = None
        self.spans: dict[str, Span] = {}

    def read(self, clause: Tree[Token]) -> None:
        """Take in one clause.

        Raises
        ------
        ParseError
            If it was given before, or has a value out of range.
        """
        tokens = list(tokens_of(clause))
        span = Span(start_of(tokens[0]), end_of(tokens[-1]))
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
        first, *rest = sorted([error, *confidence], key=lambda a: start_of(next(tokens_of(a))))
        self.error = self._fraction(first, "the error", "ERROR WITHIN 5%")
        if rest:
            at = next(t for t in tokens if t.type == "CONFIDENCE")
            self._once("confidence", Span(start_of(at), end_of(tokens[-1])))
            self.confidence = self._fraction(rest[0], "the confidence", "CONFIDENCE 95%")

    def _confidence(self, clause: Tree[Token], tokens: list[Token]) -> None:
        self.confidence = self._fraction(next(clause.find_data("amount")), "the confidence", "CONFIDENCE 95%")

    def _fraction(self, amount: Tree[Token], what: str, hint: str) -> float:
        """A share between 0 and 1, written 5% or 0.05."""
        tokens = list(tokens_of(amount))
        text = "".join(t.value for t in tokens)
        try:
            return share(text)
        except BadNumber as fault:
            meant = meant_percent(text)
            clause = hint.rsplit(" ", 1)[0]
            span = Span(start_of(tokens[0]), end_of(tokens[-1]))
            raise self._fault(f"{what} {fault}", span, f"{clause} {meant}" if meant else hint) from fault

    def _behavior(self, clause: Tree[Token], tokens: list[Token]) -> None:
        self.behavior = self._choice(tokens[1], unquote(tokens[1].value), BEHAVIORS, "behavior")

    def _method(self, clause: Tree[Token], tokens: list[Token]) -> None:
        self.method = self._choice(tokens[1], tokens[1].value, METHODS, "method")

    def _choice(self, token: Token, value: str, known: tuple[str, ...], what: str) -> str:
        if value.lower() in known:
            return value.lower()
        near = get_close_matches(value.lower(), known, 1)
        hint = f"{near[0]}, or another of " if near else "one of "
        rest = ", ".join(k for k in known if k not in near)
        raise self._fault(f"there is no {what} {value!r}", Span(start_of(token), end_of(token)), hint + rest)

    def _options(self, clause: Tree[Token], tokens: list[Token]) -> None:
        self.read_options(clause)

    def read_options(self, clause: Tree[Token]) -> None:
        """The pairs of OPTIONS (...) or WITH (...); names in small letters."""
        for option in clause.find_data("option"):
            name, _, value = option.children
            assert isinstance(name, Token)
            assert isinstance(value, Tree)
            key = (unquote(name.value) if name.type == "TEXT" else name.value).lower()
            if key in self.options:
                span = Span(start_of(name), end_of(name))
                raise self._fault(f"option {name.value!r} is given twice", span, "keep one of them")
            self.options[key] = plain_value(value)

    def _size(self, clause: Tree[Token], tokens: list[Token]) -> None:
        self.size_bytes = self.read_size(
            tokens[0].value.split(None, 1)[1], Span(start_of(tokens[0]), end_of(tokens[0]))
        )

    def read_size(self, text: str, span: Span) -> int:
        """The bytes of a SIZE."""
        try:
            return byte_count(text)
        except BadNumber as fault:
            raise self._fault(f"the size {fault}", span, "SIZE 64 KB") from fault

    def _seed(self, clause: Tree[Token], tokens: list[Token]) -> None:
        number = tokens[1]
        try:
            self.seed = whole(number.value)
        except BadNumber as fault:
            span = Span(start_of(number), end_of(number))
            raise self._fault(
                f"the seed must be a whole number below 2^63: it {fault}", span, "SEED 7"
            ) from fault
