"""Statements as frozen values: what each says, and where its parts stand in the text.

Equality compares what statements say, not where: texts and spans do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .join_graph import Accuracy, Span

BEHAVIORS = ("do_nothing", "local_omit", "strict", "run_on_full_table", "partial_run_on_base_table")
METHODS = (
    "hash",
    "agms",
    "skimmed",
    "convolution",
    "key_sample",
    "two_level",
    "sampled_messages",
    "sample_sketch",
    "distinct",
    "join_distinct",
    "sampled_query",
    "exact",
)
FORMATS = ("text", "json", "mermaid", "svg")


@dataclass(frozen=True, slots=True)
class ApproximateSelect:
    """A SELECT to be estimated.

    `select_sql` is `sql` with APPROXIMATE and our clauses blanked: Spark can run it, and offsets agree.
    `size_bytes` bounds all state of the query together.
    `clause_spans` tells where each clause stands, by its name (``error``, ``method``, ``options``, ...).
    """

    sql: str = field(compare=False)
    select_sql: str
    accuracy: Accuracy = field(default_factory=Accuracy)
    method: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    size_bytes: int | None = None
    clause_spans: Mapping[str, Span] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ExactSelect:
    """``EXACT SELECT``: run by Spark as it is; accuracy clauses behind it are blanked."""

    sql: str = field(compare=False)
    select_sql: str


@dataclass(frozen=True, slots=True)
class EstimateRows:
    """``ESTIMATE ROWS FOR SELECT ...``: how many rows would the query give."""

    sql: str = field(compare=False)
    select: ApproximateSelect


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN [ANALYZE] [FORMAT f]`` of one of our queries; `analyze`: it is run, and what came of it is told."""

    sql: str = field(compare=False)
    format: str
    statement: ApproximateSelect | ExactSelect | EstimateRows
    analyze: bool = False


@dataclass(frozen=True, slots=True)
class SetOption:
    """``SET skimql.name = value``; `value` is the text without its quotes."""

    sql: str = field(compare=False)
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class PassThrough:
    """Not ours: goes to Spark unchanged."""

    sql: str


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the statement's text, as it stands, and its place; names without their backticks."""

    text: str
    span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class SketchKey:
    """A key of a sketch: an expression over its table, and the join class given by CLASS."""

    expression: Part
    join_class: Part | None = None


@dataclass(frozen=True, slots=True)
class CreateSketch:
    """``CREATE SKETCH name ON table (keys) [FOR SUM(weight)] [WHERE condition] [GROUP BY groups] ...``.

    `table` is the dotted name in parts. Size and accuracy exclude each other; both may be missing.
    """

    sql: str = field(compare=False)
    name: Part
    table: tuple[Part, ...]
    keys: tuple[SketchKey, ...]
    weight: Part | None = None
    condition: Part | None = None
    method: str | None = None
    size_bytes: int | None = None
    accuracy: Accuracy = field(default_factory=Accuracy)
    options: Mapping[str, str] = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False
    groups: tuple[Part, ...] = ()
    method_span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CreateSketches:
    """``CREATE SKETCHES name FOR QUERIES (...) SIZE n MINIMIZE AVERAGE | MAX ERROR [PARTITION INTO k]``."""

    sql: str = field(compare=False)
    name: Part
    queries: tuple[Part, ...]
    size_bytes: int
    objective: str
    partitions: int = 1
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class AppendSketch:
    """``APPEND SKETCH name FROM table | 'path' | SKETCH other [WHERE condition] [DELETES WHEN d | WEIGHT w]``.

    One of `table`, `path` and `other` is given, a condition and the rest for the first two only.
    """

    sql: str = field(compare=False)
    name: Part
    table: tuple[Part, ...] = ()
    path: Part | None = None
    condition: Part | None = None
    other: Part | None = None
    deletes: Part | None = None
    weight: Part | None = None


@dataclass(frozen=True, slots=True)
class RefreshSketch:
    """``REFRESH SKETCH name``: build it anew."""

    sql: str = field(compare=False)
    name: Part


@dataclass(frozen=True, slots=True)
class ShowSketches:
    """``SHOW SKETCHES [LIKE 'pattern']``; in the pattern ``*`` is anything and ``|`` separates alternatives."""

    sql: str = field(compare=False)
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeSketch:
    """``DESCRIBE SKETCH [EXTENDED] name``."""

    sql: str = field(compare=False)
    name: Part
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DropSketch:
    """``DROP SKETCH [IF EXISTS] name``."""

    sql: str = field(compare=False)
    name: Part
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ExportSketch:
    """``EXPORT SKETCH name TO 'path'``."""

    sql: str = field(compare=False)
    name: Part
    path: Part


@dataclass(frozen=True, slots=True)
class ImportSketch:
    """``IMPORT SKETCH name FROM 'path' [TRUSTED]``; trusted, REFRESH and APPEND may read what the file names."""

    sql: str = field(compare=False)
    name: Part
    path: Part
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class ExplainSketches:
    """``EXPLAIN SKETCHES name``."""

    sql: str = field(compare=False)
    name: Part


@dataclass(frozen=True, slots=True)
class StreamColumn:
    """A column of a stream; the type is Spark's text."""

    name: Part
    type: Part


@dataclass(frozen=True, slots=True)
class CreateStream:
    """``CREATE STREAM name (columns) FROM format 'path' [OPTIONS (...)]``, then how often an event counts
    (``DELETES WHEN``, ``WEIGHT`` or ``CHANGES``), and ``DEDUP (columns) WITHIN 'time'``.
    """

    sql: str = field(compare=False)
    name: Part
    columns: tuple[StreamColumn, ...]
    format: str
    path: Part
    options: Mapping[str, str] = field(default_factory=dict)
    deletes: Part | None = None
    weight: Part | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    changes: Part | None = None
    dedup: tuple[Part, ...] = ()
    within: Part | None = None


@dataclass(frozen=True, slots=True)
class ShowStreams:
    """``SHOW STREAMS``."""

    sql: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class DescribeStream:
    """``DESCRIBE STREAM name``."""

    sql: str = field(compare=False)
    name: Part


@dataclass(frozen=True, slots=True)
class DropStream:
    """``DROP STREAM [IF EXISTS] name``."""

    sql: str = field(compare=False)
    name: Part
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateContinuousView:
    """``CREATE CONTINUOUS VIEW name [WITH (settings)] AS SELECT ...``; `query` is the SELECT's own text."""

    sql: str = field(compare=False)
    name: Part
    query: Part
    settings: Mapping[str, str] = field(default_factory=dict)
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateContinuousViews:
    """``CREATE CONTINUOUS VIEWS name [WITH (settings)] (q AS (SELECT ...), ...) SIZE n MINIMIZE AVERAGE | MAX ERROR``.

    `members` are the name and the SELECT's own text of each view.
    """

    sql: str = field(compare=False)
    name: Part
    members: tuple[tuple[Part, Part], ...]
    size_bytes: int
    objective: str
    partitions: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class ShowQueries:
    """``SHOW QUERIES [EXTENDED]``."""

    sql: str = field(compare=False)
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ControlQuery:
    """``PAUSE``, ``RESUME`` or ``TERMINATE`` of a standing query; `action` is the word in small letters."""

    sql: str = field(compare=False)
    action: str
    name: Part


Command = (
    CreateSketch
    | CreateSketches
    | AppendSketch
    | RefreshSketch
    | ShowSketches
    | DescribeSketch
    | DropSketch
    | ExportSketch
    | ImportSketch
    | ExplainSketches
    | CreateStream
    | ShowStreams
    | DescribeStream
    | DropStream
    | CreateContinuousView
    | CreateContinuousViews
    | ShowQueries
    | ControlQuery
)
STREAM_STATEMENTS = (
    CreateStream,
    ShowStreams,
    DescribeStream,
    DropStream,
    CreateContinuousView,
    CreateContinuousViews,
    ShowQueries,
    ControlQuery,
)
Statement = ApproximateSelect | ExactSelect | EstimateRows | Explain | SetOption | PassThrough | Command
