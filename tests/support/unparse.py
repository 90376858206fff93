"""Statements back to text: one spelling for each, that parses to an equal statement."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

from skimql.parser.join_graph import Accuracy
from skimql.parser.lexing import end_of, grammar
from skimql.parser.syntax import (
    AppendSketch,
    ApproximateSelect,
    ControlQuery,
    CreateContinuousView,
    CreateContinuousViews,
    CreateSketch,
    CreateSketches,
    CreateStream,
    DescribeSketch,
    DescribeStream,
    DropSketch,
    DropStream,
    EstimateRows,
    ExactSelect,
    Explain,
    ExplainSketches,
    ExportSketch,
    ImportSketch,
    Part,
    PassThrough,
    RefreshSketch,
    SetOption,
    ShowQueries,
    ShowSketches,
    ShowStreams,
    Statement,
)


@singledispatch
def unparse(statement: Statement) -> str:
    """The statement as text, without a semicolon.

    Raises
    ------
    TypeError
        If it is no statement.
    """
    raise TypeError(f"not a statement: {statement!r}")


def quoted_name(part: Part) -> str:
    """A name in backticks where it needs them."""
    plain = part.text.isascii() and part.text.isidentifier()
    return part.text if plain else "`" + part.text.replace("`", "``") + "`"


def quoted_text(value: str) -> str:
    """A text literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _dotted(parts: tuple[Part, ...]) -> str:
    return ".".join(quoted_name(p) for p in parts)


def _percent(share: float) -> str:
    """A share between 0 and 1, without loss."""
    return repr(share)


def _accuracy(accuracy: Accuracy) -> list[str]:
    words = []
    if accuracy.relative_error is not None:
        words.append(f"ERROR WITHIN {_percent(accuracy.relative_error)}")
    if accuracy.confidence is not None:
        words.append(f"CONFIDENCE {_percent(accuracy.confidence)}")
    if accuracy.behavior is not None:
        words.append(f"BEHAVIOR {quoted_text(accuracy.behavior)}")
    return words


def _pairs(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {quoted_text(value)}" for name, value in pairs.items())


def _clauses(select: ApproximateSelect) -> list[str]:
    words = _accuracy(select.accuracy)
    if select.method is not None:
        words.append(f"USING {select.method}")
    if select.options:
        words.append(f"OPTIONS ({_pairs(select.options)})")
    if select.seed is not None:
        words.append(f"SEED {select.seed}")
    if select.size_bytes is not None:
        words.append(f"SIZE {select.size_bytes}")
    return words


def _approximate(select_sql: str) -> str:
    """The SELECT with APPROXIMATE behind each SELECT outside of parentheses."""
    depth, places = 0, []
    for token in grammar("clauses", "basic").lex(select_sql):
        depth += {"OPEN": 1, "CLOSE": -1}.get(token.type, 0)
        if depth == 0 and token.type == "SELECT":
            places.append(end_of(token))
    for place in reversed(places[:1]):
        select_sql = f"{select_sql[:place]} APPROXIMATE{select_sql[place:]}"
    return select_sql.strip()


@unparse.register
def _(statement: ApproximateSelect) -> str:
    return " ".join([_approximate(statement.select_sql), *_clauses(statement)])


@unparse.register
def _(statement: ExactSelect) -> str:
    return f"EXACT {statement.select_sql.strip()}"


@unparse.register
def _(statement: EstimateRows) -> str:
    select = statement.select
    return " ".join(["ESTIMATE ROWS FOR", select.select_sql.strip(), *_clauses(select)])


@unparse.register
def _(statement: Explain) -> str:
    analyze = "ANALYZE " if statement.analyze else ""
    return f"EXPLAIN {analyze}FORMAT {statement.format.upper()} {unparse(statement.statement)}"


@unparse.register
def _(statement: SetOption) -> str:
    return f"SET {statement.name} = {quoted_text(statement.value)}"


@unparse.register
def _(statement: PassThrough) -> str:
    return statement.sql


@unparse.register
def _(statement: CreateSketch) -> str:
    keys = ", ".join(
        k.expression.text + (f" CLASS {quoted_name(k.join_class)}" if k.join_class else "")
        for k in statement.keys
    )
    words = ["CREATE", *(["OR REPLACE"] if statement.or_replace else []), "SKETCH"]
    words += ["IF NOT EXISTS"] if statement.if_not_exists else []
    words += [quoted_name(statement.name), "ON", _dotted(statement.table), f"({keys})"]
    words += [f"FOR SUM({statement.weight.text})"] if statement.weight else []
    words += [f"WHERE {statement.condition.text}"] if statement.condition else []
    words += [f"USING {statement.method}"] if statement.method else []
    words += [f"SIZE {statement.size_bytes} B"] if statement.size_bytes is not None else []
    words += _accuracy(statement.accuracy)
    words += [f"OPTIONS ({_pairs(statement.options)})"] if statement.options else []
    return " ".join(words)


@unparse.register
def _(statement: CreateSketches) -> str:
    queries = "; ".join(q.text for q in statement.queries)
    replace = "OR REPLACE " if statement.or_replace else ""
    partition = f" PARTITION INTO {statement.partitions}" if statement.partitions > 1 else ""
    return (
        f"CREATE {replace}SKETCHES {quoted_name(statement.name)} FOR QUERIES ({queries}) "
        f"SIZE {statement.size_bytes} B MINIMIZE {statement.objective.upper()} ERROR{partition}"
    )


@unparse.register
def _(statement: CreateContinuousViews) -> str:
    members = ", ".join(f"{quoted_name(name)} AS ({query.text})" for name, query in statement.members)
    replace = "OR REPLACE " if statement.or_replace else ""
    settings = f" WITH ({_pairs(statement.settings)})" if statement.settings else ""
    partition = f" PARTITION INTO {statement.partitions}" if statement.partitions > 1 else ""
    return (
        f"CREATE {replace}CONTINUOUS VIEWS {quoted_name(statement.name)}{settings} ({members}) "
        f"SIZE {statement.size_bytes} B MINIMIZE {statement.objective.upper()} ERROR{partition}"
    )


@unparse.register
def _(statement: AppendSketch) -> str:
    source = quoted_text(statement.path.text) if statement.path else _dotted(statement.table)
    where = f" WHERE {statement.condition.text}" if statement.condition else ""
    return f"APPEND SKETCH {quoted_name(statement.name)} FROM {source}{where}"


@unparse.register
def _(statement: RefreshSketch) -> str:
    return f"REFRESH SKETCH {quoted_name(statement.name)}"


@unparse.register
def _(statement: ShowSketches) -> str:
    like = "" if statement.pattern is None else f" LIKE {quoted_text(statement.pattern)}"
    return f"SHOW SKETCHES{like}"


@unparse.register
def _(statement: DescribeSketch) -> str:
    return f"DESCRIBE SKETCH {'EXTENDED ' if statement.extended else ''}{quoted_name(statement.name)}"


@unparse.register
def _(statement: DropSketch) -> str:
    return f"DROP SKETCH {'IF EXISTS ' if statement.if_exists else ''}{quoted_name(statement.name)}"


@unparse.register
def _(statement: ExportSketch) -> str:
    return f"EXPORT SKETCH {quoted_name(statement.name)} TO {quoted_text(statement.path.text)}"


@unparse.register
def _(statement: ImportSketch) -> str:
    trusted = " TRUSTED" if statement.trusted else ""
    return f"IMPORT SKETCH {quoted_name(statement.name)} FROM {quoted_text(statement.path.text)}{trusted}"


@unparse.register
def _(statement: ExplainSketches) -> str:
    return f"EXPLAIN SKETCHES {quoted_name(statement.name)}"


@unparse.register
def _(statement: CreateStream) -> str:
    columns = ", ".join(f"{quoted_name(c.name)} {c.type.text}" for c in statement.columns)
    options = f" OPTIONS ({_pairs(statement.options)})" if statement.options else ""
    signs = f" DELETES WHEN {statement.deletes.text}" if statement.deletes else ""
    signs += f" WEIGHT {statement.weight.text}" if statement.weight else ""
    replace = "OR REPLACE " if statement.or_replace else ""
    exists = "IF NOT EXISTS " if statement.if_not_exists else ""
    return (
        f"CREATE {replace}STREAM {exists}{quoted_name(statement.name)} ({columns}) FROM {statement.format.upper()} "
        f"{quoted_text(statement.path.text)}{options}{signs}"
    )


@unparse.register
def _(statement: ShowStreams) -> str:
    return "SHOW STREAMS"


@unparse.register
def _(statement: DescribeStream) -> str:
    return f"DESCRIBE STREAM {quoted_name(statement.name)}"


@unparse.register
def _(statement: DropStream) -> str:
    return f"DROP STREAM {'IF EXISTS ' if statement.if_exists else ''}{quoted_name(statement.name)}"


@unparse.register
def _(statement: CreateContinuousView) -> str:
    replace = "OR REPLACE " if statement.or_replace else ""
    settings = f" WITH ({_pairs(statement.settings)})" if statement.settings else ""
    return (
        f"CREATE {replace}CONTINUOUS VIEW {quoted_name(statement.name)}{settings} AS {statement.query.text}"
    )


@unparse.register
def _(statement: ShowQueries) -> str:
    return f"SHOW QUERIES{' EXTENDED' if statement.extended else ''}"


@unparse.register
def _(statement: ControlQuery) -> str:
    return f"{statement.action.upper()} {quoted_name(statement.name)}"
