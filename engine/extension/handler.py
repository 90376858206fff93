"""What the jar calls: a text that Spark has refused is read here, and what is ours in it answered.

Nothing is raised into the JVM: a fault is a value there, and becomes an exception of Spark's.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import (
    BudgetExceeded,
    DataError,
    EnvironmentFault,
    ParseError,
    SkimqlError,
    StreamError,
    UnknownName,
    UnsupportedQuery,
)
from ...parser.join_graph import Span
from ...parser.lexing import blank, identifiers
from ...sketches.intervals.interval import Estimate
from ..faults import as_ours
from ..results.answer import MET, Answer
from ..spark.arrow_frames import frame_of
from ..spark.isolation import is_classic, moved, temp_views, variables
from .reading import read, refuse_change
from .rows import rows_text
from .sessions import AttachedSession, Sessions
from .shape import shape_of

if TYPE_CHECKING:
    pass

_LOG = logging.getLogger("skimql")

# Behind one of these words a number stands without the letter that says its type.
_NUMBER_WANTED = re.compile(r"\b(?:WITHIN|ERROR|CONFIDENCE|SEED|SIZE)\s*$", re.IGNORECASE)
_TYPE_LETTER = re.compile(r"(?<=[\d.])(?:BD|[LDFSY])$")


# SQLSTATEs, which scripts catch errors by.
_STATES: tuple[tuple[type[SkimqlError], str], ...] = (
    (ParseError, "42601"),
    (UnsupportedQuery, "0A000"),
    (UnknownName, "42704"),
    (BudgetExceeded, "54000"),
    (StreamError, "55000"),
    (EnvironmentFault, "58000"),
    (DataError, "22000"),
)
_OTHER_STATE, _FAILED_STATE = "42000", "XX000"


class Handler:
    """Answers for one enabled Spark session, and those beside it.

    A `java.util.function.BiFunction` to the JVM, of a request as JSON and the Spark session that asks.
    """

    def __init__(self) -> None:
        self.sessions: Sessions | None = None

    def apply(self, request: str, java: Any) -> Any:
        """The answer: a DataFrame of the JVM's, or JSON."""
        text = ""
        try:
            asked = json.loads(request)
            text = asked.get("text", "")
            return self._asked(asked, java)
        except SkimqlError as fault:
            return json.dumps({"error": told(fault, text)})
        except Exception as fault:
            ours = as_ours(fault, "") or SkimqlError(f"{type(fault).__name__}: {fault}", "SKIMQL_FAILED")
            return json.dumps({"error": told(ours, text)})
        except BaseException as fault:
            # Ctrl-C, which has ended what ran here.
            stopped = SkimqlError(
                f"the statement was interrupted ({type(fault).__name__})", "SKIMQL_INTERRUPTED"
            )
            return json.dumps({"error": told(stopped, text)})

    def _asked(self, asked: Mapping[str, Any], java: Any) -> Any:
        if asked["op"] == "ping":
            return "{}"
        if self.sessions is None:
            raise UnsupportedQuery(
                "SkimQL is switched off", "SKIMQL_NOT_ENABLED", hint="skimql.enable(spark)"
            )
        if asked["op"] == "read":
            return self._read(self.sessions, asked, java)
        return answered(self.sessions, asked, java)

    def _read(self, sessions: Sessions, asked: Mapping[str, Any], java: Any) -> str:
        found = read(asked["text"], asked["first"])
        if found is None:
            return "{}"
        return json.dumps({"text": found.text, "requests": found.requests})

    class Java:
        implements = ("java.util.function.BiFunction",)


def answered(sessions: Sessions, asked: Mapping[str, Any], java: Any) -> Any:
    """What stands in the place of a part of a text: a DataFrame of the JVM's, or a small answer as a text."""
    part = _Part.of(asked)
    purpose = asked.get("purpose", "")
    place: Sequence[str] = asked.get("place", ())
    session = sessions.asked(asked["session"], java, place, asked.get("bounds", True), asked.get("settings"))
    if purpose == "view":
        _refuse_temporary(session, part)
    if "start" not in asked:
        # Of `skimql_answer`.
        refuse_change(part.text)
    try:
        if purpose == "explain" or (purpose and purpose != "statement" and not place):
            frame = shape_of(session, part.text)
        else:
            result = session.sql(part.text)
            if isinstance(result, Answer):
                return _handed_over(session, result)
            frame = result
    except SkimqlError as fault:
        _tell_variable(session, part, fault)
        raise part.located(fault) from fault
    home = session.spark if is_classic(session.spark) else sessions.home
    return moved(frame, home)._jdf


def _tell_variable(session: AttachedSession, part: _Part, fault: SkimqlError) -> None:
    """Where what is no column is a variable, of the session or of the script: how its value gets into the text."""
    if fault.code != "SKIMQL_UNKNOWN_COLUMN" or fault.span is None:
        return
    name = fault.sql[slice(*fault.span)].strip("`")
    declared = re.search(rf"\bDECLARE\b[^;]*\b{re.escape(name)}\b", part.whole, re.IGNORECASE)
    if declared or name.lower() in variables(session.spark):
        fault.hint = f"EXECUTE IMMEDIATE 'SELECT APPROXIMATE ... ? ...' USING {name}, as {name} is a variable"


def _handed_over(session: AttachedSession, answer: Answer) -> Any:
    """An answer as the jar takes it: its rows as a text, or a DataFrame of the JVM's."""
    _say(answer)
    table = answer.arrow()
    text = rows_text(table)
    return frame_of(session.spark, table)._jdf if text is None else text


def _say(answer: Answer) -> None:
    """Notes go to the log: a warning where no column says that a value is not certified, or misses its target."""
    cells = [cell for row in answer.rows for cell in row if isinstance(cell, Estimate)]
    doubtful = answer.target not in ("", MET) or not all(cell.certified for cell in cells)
    for note in answer.notes:
        _LOG.log(logging.WARNING if doubtful and not answer.bounds else logging.INFO, "%s", note)


def _refuse_temporary(session: AttachedSession, part: _Part) -> None:
    """A view that lasts means the same in every session: what it names is no view of one session alone."""
    hidden = sorted(temp_views(session.spark) & identifiers(part.text))
    if hidden:
        raise part.located(
            UnsupportedQuery(
                f"a view that lasts cannot name {hidden[0]}, which is a temporary view of this session",
                "SKIMQL_TEMPORARY_IN_VIEW",
                hint="CREATE TEMPORARY VIEW, or the view's own tables",
            )
        )


class _Part:
    """The part of a text that is ours, with values for its parameters, and what its places are in the whole."""

    def __init__(self, whole: str, span: Span, values: Sequence[tuple[Span, str]]) -> None:
        self.whole = whole
        before = blank(whole, Span(0, span.start))
        text = blank(before, Span(span.end, len(whole)))
        # By where a value ends in the text that is read, how much further it is there than in the whole.
        self._moved: list[tuple[int, int]] = []
        shift = 0
        for place, value in values:
            start, end = place.start + shift, place.end + shift
            if _NUMBER_WANTED.search(text[:start]):
                value = _TYPE_LETTER.sub("", value)
            value = value.ljust(end - start)
            text = text[:start] + value + text[end:]
            shift += len(value) - (end - start)
            self._moved.append((start + len(value), shift))
        self.text = text.rstrip()

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> _Part:
        whole = asked["text"]
        span = Span(asked.get("start", 0), asked.get("end", len(whole)))
        marked: Sequence[Sequence[Any]] = asked.get("markers", ())
        literals: Sequence[str] = asked.get("literals", ())
        return cls(whole, span, [(Span(m[0], m[1]), v) for m, v in zip(marked, literals, strict=True)])

    def located(self, fault: SkimqlError) -> SkimqlError:
        """The fault with its place in the whole text."""
        if fault.sql and fault.span is not None and len(fault.sql) <= len(self.text) + 1:
            fault.span = (self._in_whole(fault.span[0]), self._in_whole(fault.span[1]))
            fault.sql = self.whole
        return fault

    def _in_whole(self, place: int) -> int:
        shift = max((by for end, by in self._moved if end <= place), default=0)
        return min(place - shift, len(self.whole))


def told(fault: SkimqlError, text: str) -> dict[str, Any]:
    """An error as the jar is told of it: its place as Spark counts, lines from 1 and columns from 0."""
    shown = str(fault).removeprefix("error: ")
    message = "\n".join([fault.message, *([f"  try: {fault.hint}"] if fault.hint else [])])
    about: dict[str, Any] = {
        "parse": isinstance(fault, ParseError),
        "code": fault.code,
        "state": _state(fault),
        "message": message,
        "shown": shown,
    }
    if fault.span is not None and fault.sql:
        start = min(fault.span[0], len(fault.sql))
        line_start = fault.sql.rfind("\n", 0, start) + 1
        about |= {"line": fault.line, "position": start - line_start, "sql": fault.sql}
        about |= {"start": start, "stop": max(start, min(fault.span[1], len(fault.sql)) - 1)}
    elif text:
        about["sql"] = None
    return about


def _state(fault: SkimqlError) -> str:
    if type(fault) is SkimqlError:
        return _FAILED_STATE
    return next((state for kind, state in _STATES if isinstance(fault, kind)), _OTHER_STATE)
