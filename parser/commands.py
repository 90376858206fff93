"""Sketches that are kept and standing queries, read by ``grammar/commands.lark``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lark import Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from ..errors import ParseError
from .amounts import MOST_PARTITIONS, BadNumber, whole
from .clauses import Clauses
from .join_graph import Accuracy, Span
from .lexing import end_of, grammar, start_of, tokens_of, unquote
from .syntax import (
    AppendSketch,
    Command,
    ControlQuery,
    CreateContinuousView,
    CreateSketch,
    CreateSketches,
    CreateStream,
    DescribeSketch,
    DescribeStream,
    DropSketch,
    DropStream,
    ExplainSketches,
    ExportSketch,
    ImportSketch,
    Part,
    RefreshSketch,
    ShowQueries,
    ShowSketches,
    ShowStreams,
    SketchKey,
    StreamColumn,
)

# The first words by which a statement is ours; CREATE OR REPLACE is looked at as CREATE.
_HEADS = frozenset(
    [
        ("CREATE", "SKETCH"),
        ("CREATE", "SKETCHES"),
        ("CREATE", "STREAM"),
        ("CREATE", "CONTINUOUS"),
        ("APPEND", "SKETCH"),
        ("REFRESH", "SKETCH"),
        ("SHOW", "SKETCHES"),
        ("SHOW", "QUERIES"),
        ("DESCRIBE", "SKETCH"),
        ("DESC", "SKETCH"),
        ("DROP", "SKETCH"),
        ("DROP", "SKETCHES"),
        ("EXPORT", "SKETCH"),
        ("IMPORT", "SKETCH"),
        ("EXPLAIN", "SKETCHES"),
        ("SHOW", "STREAMS"),
        ("DESCRIBE", "STREAM"),
        ("DESC", "STREAM"),
        ("DROP", "STREAM"),
    ]
)
_CONTROLS = frozenset(["PAUSE", "RESUME", "TERMINATE"])
_STREAM_FORMATS = ("json", "csv", "parquet", "kafka", "rate")

_EXAMPLES = {
    "CREATE SKETCH": "CREATE SKETCH s ON orders (custkey) SIZE 64 KB",
    "CREATE SKETCHES": "CREATE SKETCHES w FOR QUERIES (SELECT ...; ...) SIZE 16 MB MINIMIZE AVERAGE ERROR",
    "CREATE STREAM": "CREATE STREAM s (k BIGINT, op STRING) FROM JSON 'path' DELETES WHEN op = 'd'",
    "CREATE CONTINUOUS": "CREATE CONTINUOUS VIEW q AS SELECT APPROXIMATE COUNT(*) FROM ...",
    "APPEND SKETCH": "APPEND SKETCH s FROM orders WHERE day = '2026-11-27'",
    "EXPORT SKETCH": "EXPORT SKETCH s TO 'path'",
    "IMPORT SKETCH": "IMPORT SKETCH s FROM 'path'",
}


def is_command(words: list[str]) -> bool:
    """Whether the first words of a statement, in capitals, are those of one of ours."""
    if words[:1] and words[0] in _CONTROLS:
        return True
    return tuple(_without_replace(words)[:2]) in _HEADS


def refuse_unknown(text: str, words: list[str]) -> None:
    """Refuse a statement about sketches, streams or standing queries that does not exist; Spark's are let through.

    Raises
    ------
    ParseError
        With a statement that does.
    """
    said = _without_replace(words) if words else []
    if len(said) < 2 or said[0] not in _VERBS or said[1] not in _NOUNS:
        return
    if len(text.split()) < 3 and said[0] != "SHOW":
        # A table may have that name.
        return
    singular = said[1].removesuffix("ES") if said[1] == "SKETCHES" else said[1]
    hint = _INSTEAD.get((said[0], said[1])) or "SHOW SKETCHES, or " + ", ".join(
        sorted(" ".join(head) for head in _HEADS if head[1].startswith(singular))
    )
    start = len(text) - len(text.lstrip())
    raise ParseError(
        f"there is no statement {said[0]} {said[1]}", sql=text, span=(start, len(text.rstrip())), hint=hint
    )


_VERBS = frozenset(
    ["ALTER", "APPEND", "CREATE", "DESC", "DESCRIBE", "DROP", "EXPORT", "IMPORT", "REFRESH", "SHOW"]
)
_NOUNS = frozenset(["SKETCH", "SKETCHES", "STREAM", "STREAMS", "CONTINUOUS"])
_INSTEAD = {
    (
        "REFRESH",
        "SKETCHES",
    ): "CREATE OR REPLACE SKETCHES w FOR QUERIES (...) SIZE 1 MB MINIMIZE AVERAGE ERROR",
    ("DESCRIBE", "SKETCHES"): "EXPLAIN SKETCHES w",
    ("DESC", "SKETCHES"): "EXPLAIN SKETCHES w",
    ("EXPORT", "SKETCHES"): "a copy of the catalog's folder; EXPORT SKETCH takes one sketch",
    ("IMPORT", "SKETCHES"): "a copy of the catalog's folder; IMPORT SKETCH takes one sketch",
    ("APPEND", "SKETCHES"): "CREATE OR REPLACE SKETCHES w FOR QUERIES (...) SIZE 1 MB MINIMIZE AVERAGE ERROR",
    ("SHOW", "SKETCH"): "SHOW SKETCHES, or DESCRIBE SKETCH s",
}


def _without_replace(words: list[str]) -> list[str]:
    return [words[0], *words[3:]] if words[1:3] == ["OR", "REPLACE"] else words


def read_command(text: str, visible: str, words: list[str]) -> Command:
    """Read a statement that `is_command`; `visible` is its text without comments.

    Raises
    ------
    ParseError
        At the first word that does not belong; the hint is a statement that works.
    """
    head = " ".join(_without_replace(words)[:2])
    if words[0] in _CONTROLS:
        head = words[0]
    try:
        tree = grammar("commands").parse(visible)
    except UnexpectedInput as error:
        raise _misplaced(text, head, error) from error
    (inner,) = tree.children
    assert isinstance(inner, Tree)
    return _READERS[str(inner.data)](_Reader(text, inner))


def _misplaced(text: str, head: str, error: UnexpectedInput) -> ParseError:
    hint = _EXAMPLES.get(head, f"{head} name")
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        span = (start_of(error.token), end_of(error.token))
        return ParseError(f"{error.token.value!r} is not expected here", sql=text, span=span, hint=hint)
    place = getattr(error, "pos_in_stream", None)
    if isinstance(error, UnexpectedToken) or place is None:
        end = len(text.rstrip().rstrip(";").rstrip())
        return ParseError("the statement ends too early", sql=text, span=(end, end + 1), hint=hint)
    return ParseError(f"{text[place]!r} is not expected here", sql=text, span=(place, place + 1), hint=hint)


class _Reader:
    """One statement's tree, and what can be asked of it."""

    def __init__(self, text: str, tree: Tree[Token]) -> None:
        self.text = text
        self.tree = tree
        self.clauses = Clauses(text)

    def has(self, name: str) -> bool:
        """Whether a token or rule of that name stands in the statement itself."""
        return any((c.data if isinstance(c, Tree) else c.type) == name for c in self.tree.children)

    def trees(self, name: str) -> Iterator[Tree[Token]]:
        return (c for c in self.tree.children if isinstance(c, Tree) and c.data == name)

    def words(self) -> list[Token]:
        return [c for c in self.tree.children if isinstance(c, Token)]

    def fault(self, message: str, span: Span, hint: str) -> ParseError:
        return ParseError(message, sql=self.text, span=(span.start, span.end), hint=hint)

    def part(self, tree: Tree[Token]) -> Part:
        """The text under a rule, as it stands."""
        tokens = list(tokens_of(tree))
        span = Span(start_of(tokens[0]), end_of(tokens[-1]))
        return Part(self.text[span.start : span.end], span)

    def inner(self, group: Tree[Token]) -> Part:
        """The text in a pair of parentheses."""
        opened, *tokens, closed = tokens_of(group)
        span = Span(
            start_of(tokens[0]) if tokens else end_of(opened),
            end_of(tokens[-1]) if tokens else start_of(closed),
        )
        return Part(self.text[span.start : span.end], span)

    def name(self, tree: Tree[Token] | None = None) -> Part:
        """A name without its backticks."""
        tree = next(self.trees("name")) if tree is None else tree
        (token,) = tokens_of(tree)
        value = token.value
        if value.startswith("`"):
            value = value[1:-1].replace("``", "`")
        return Part(value, Span(start_of(token), end_of(token)))

    def relation(self) -> tuple[Part, ...]:
        names = [n for r in self.trees("relation") for n in r.children if isinstance(n, Tree)]
        return tuple(self.name(n) for n in names)

    def path(self) -> Part:
        (token,) = tokens_of(next(self.trees("path")))
        return Part(unquote(token.value), Span(start_of(token), end_of(token)))

    def clause(self, name: str) -> Tree[Token] | None:
        """A clause that may stand once."""
        found = list(self.trees(name))
        if len(found) > 1:
            span = self.part(found[1]).span
            raise self.fault(f"{name.replace('_', ' ').upper()} is given twice", span, "keep one of them")
        return found[0] if found else None

    def condition(self, name: str) -> Part | None:
        """The SQL inside a clause such as WHERE."""
        clause = self.clause(name)
        return None if clause is None else self.part(next(clause.find_data("sql")))

    def options(self, name: str = "options") -> dict[str, str]:
        clause = self.clause(name)
        if clause is None:
            return {}
        self.clauses.read_options(clause)
        return dict(self.clauses.options)

    def size(self) -> int | None:
        """SIZE in bytes; K, M and G are powers of 1,024."""
        clause = self.clause("size")
        if clause is None:
            return None
        tokens = list(tokens_of(clause))
        return self.clauses.read_size(" ".join(t.value for t in tokens[1:]), self.part(clause).span)

    def accuracy(self) -> Accuracy:
        clause = self.clause("error_within")
        if clause is None:
            return Accuracy()
        self.clauses.read(clause)
        return Accuracy(self.clauses.error, self.clauses.confidence)


def _create_sketch(reader: _Reader) -> CreateSketch:
    size, accuracy = reader.size(), reader.accuracy()
    if size is not None and accuracy.relative_error is not None:
        span = reader.clauses.spans["error_within"]
        raise reader.fault("SIZE and ERROR WITHIN exclude each other", span, "keep one of them")
    method = reader.clause("method")
    if method is not None:
        reader.clauses.read(method)
    return CreateSketch(
        reader.text,
        reader.name(),
        reader.relation(),
        tuple(_key(reader, k) for k in reader.trees("key")),
        reader.condition("for_sum"),
        reader.condition("where"),
        reader.clauses.method,
        size,
        accuracy,
        reader.options(),
        reader.has("or_replace"),
        reader.has("if_not_exists"),
        _group_by(reader),
        None if method is None else reader.part(method).span,
    )


def _group_by(reader: _Reader) -> tuple[Part, ...]:
    clause = reader.clause("group_by")
    if clause is None:
        return ()
    return tuple(reader.part(c) for c in clause.children if isinstance(c, Tree) and c.data == "key_sql")


def _key(reader: _Reader, key: Tree[Token]) -> SketchKey:
    join_class = next(
        (reader.name(n) for n in key.children if isinstance(n, Tree) and n.data == "name"), None
    )
    return SketchKey(reader.part(next(key.find_data("key_sql"))), join_class)


def _create_sketches(reader: _Reader) -> CreateSketches:
    size, minimize, partition = reader.size(), reader.clause("minimize"), reader.clause("partition")
    end = reader.part(reader.tree).span
    last = Span(end.end - 1, end.end)
    if size is None:
        raise reader.fault("the sketches need a SIZE", last, "SIZE 16 MB MINIMIZE AVERAGE ERROR")
    if minimize is None:
        raise reader.fault(
            "the sketches need an objective", last, "MINIMIZE AVERAGE ERROR or MINIMIZE MAX ERROR"
        )
    objective = list(tokens_of(minimize))[1]
    if objective.value.upper() not in ("AVERAGE", "MAX"):
        span = Span(start_of(objective), end_of(objective))
        raise reader.fault(
            f"there is no objective {objective.value!r}", span, "MINIMIZE AVERAGE ERROR or MAX ERROR"
        )
    partitions = 1
    if partition is not None:
        count = list(tokens_of(partition))[1]
        try:
            partitions = whole(count.value, 1, MOST_PARTITIONS)
        except BadNumber as fault:
            span = Span(start_of(count), end_of(count))
            message = f"the number of partitions must be a whole number from 1: it {fault}"
            raise reader.fault(message, span, "PARTITION INTO 4") from fault
    queries = tuple(
        part
        for tree in reader.trees("queries")
        for query in tree.find_data("query_sql")
        for part in _queries_of(reader, query)
    )
    ordered = tuple(sorted(queries, key=lambda q: q.span.start))
    return CreateSketches(
        reader.text,
        reader.name(),
        ordered,
        size,
        objective.value.lower(),
        partitions,
        reader.has("or_replace"),
    )


def _queries_of(reader: _Reader, query: Tree[Token]) -> list[Part]:
    """The query, or those of ``(SELECT ...), (SELECT ...)``: clients that cut scripts leave no semicolon there."""
    groups = [c for c in query.children if isinstance(c, Tree) and c.data == "group"]
    commas = [c for c in query.children if isinstance(c, Token) and c.type == "COMMA"]
    if len(groups) + len(commas) != len(query.children) or len(commas) != len(groups) - 1:
        return [reader.part(query)]
    return [reader.inner(group) for group in groups]


def _append(reader: _Reader) -> AppendSketch:
    path = reader.path() if reader.has("path") else None
    other = next((reader.name(next(t.find_data("name"))) for t in reader.trees("other_sketch")), None)
    return AppendSketch(
        reader.text,
        reader.name(),
        reader.relation(),
        path,
        reader.condition("where"),
        other,
        reader.condition("deletes"),
        reader.condition("weight"),
    )


def _show_sketches(reader: _Reader) -> ShowSketches:
    pattern = next((unquote(w.value) for w in reader.words() if w.type == "TEXT"), None)
    return ShowSketches(reader.text, pattern)


def _create_stream(reader: _Reader) -> CreateStream:
    source = next(w for w in reader.words() if w.type == "WORD")
    if source.value.lower() not in _STREAM_FORMATS:
        span = Span(start_of(source), end_of(source))
        known = ", ".join(f.upper() for f in _STREAM_FORMATS)
        raise reader.fault(f"there is no stream format {source.value!r}", span, known)
    columns = tuple(
        StreamColumn(reader.name(next(c.find_data("name"))), reader.part(next(c.find_data("column_type"))))
        for c in reader.trees("column")
    )
    deletes, weight, changes = (
        reader.condition("deletes"),
        reader.condition("weight"),
        _last(reader, "changes"),
    )
    signs = [(w, p) for w, p in (("DELETES WHEN", deletes), ("WEIGHT", weight), ("CHANGES", changes)) if p]
    if len(signs) > 1:
        (one, _), (other, place) = signs[:2]
        raise reader.fault(f"{one} and {other} exclude each other", place.span, "keep one of them")
    dedup = reader.clause("dedup")
    return CreateStream(
        reader.text,
        reader.name(),
        columns,
        source.value.lower(),
        reader.path(),
        reader.options(),
        deletes,
        weight,
        reader.has("or_replace"),
        reader.has("if_not_exists"),
        changes,
        () if dedup is None else tuple(map(reader.name, dedup.find_data("name"))),
        _last(reader, "dedup"),
    )


def _last(reader: _Reader, name: str) -> Part | None:
    """The last word, or text, of a clause."""
    clause = reader.clause(name)
    if clause is None:
        return None
    token = list(tokens_of(clause))[-1]
    text = unquote(token.value) if token.type == "TEXT" else token.value.lower()
    return Part(text, Span(start_of(token), end_of(token)))


def _create_view(reader: _Reader) -> CreateContinuousView:
    query = reader.part(next(reader.trees("query_sql")))
    return CreateContinuousView(
        reader.text, reader.name(), query, reader.options("with_settings"), reader.has("or_replace")
    )


_READERS: dict[str, Callable[[_Reader], Command]] = {
    "create_sketch": _create_sketch,
    "create_sketches": _create_sketches,
    "append_sketch": _append,
    "refresh_sketch": lambda r: RefreshSketch(r.text, r.name()),
    "show_sketches": _show_sketches,
    "describe_sketch": lambda r: DescribeSketch(r.text, r.name(), r.has("EXTENDED")),
    "drop_sketch": lambda r: DropSketch(r.text, r.name(), r.has("if_exists")),
    "export_sketch": lambda r: ExportSketch(r.text, r.name(), r.path()),
    "import_sketch": lambda r: ImportSketch(r.text, r.name(), r.path(), r.has("TRUSTED")),
    "explain_sketches": lambda r: ExplainSketches(r.text, r.name()),
    "create_stream": _create_stream,
    "show_streams": lambda r: ShowStreams(r.text),
    "describe_stream": lambda r: DescribeStream(r.text, r.name()),
    "drop_stream": lambda r: DropStream(r.text, r.name(), r.has("if_exists")),
    "create_view": _create_view,
    "show_queries": lambda r: ShowQueries(r.text, r.has("EXTENDED")),
    "pause": lambda r: ControlQuery(r.text, "pause", r.name()),
    "resume": lambda r: ControlQuery(r.text, "resume", r.name()),
    "terminate": lambda r: ControlQuery(r.text, "terminate", r.name()),
}
