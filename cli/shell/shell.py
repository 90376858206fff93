"""The shell: its session, what it remembers of the last query, and how a statement is asked, waited for and shown."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ... import SkimqlError, tokens
from .. import config as configuration
from ..crash import report
from ..folders import state_folder
from ..request import Request
from ..streams import encodes
from .advice import reaching
from .background import Task, Worker
from .display import UNKNOWN, Display
from .editor import Editor, make_editor
from .history import StatementHistory, is_secret
from .interrupts import INTERRUPTS
from .keyboard import typed_lines
from .names import Names, files
from .saved import keep, kept_queries
from .theme import is_dumb
from .waiting import CANCELLING, WaitingLine

if TYPE_CHECKING:
    from ... import Answer, Session

# So long the prompt waits for what was cancelled, and so close is a second Ctrl-C to the first.
PATIENCE = 0.5
TWICE = 2.0
# Of these the names may change that there are.
_CHANGES = frozenset("CREATE DROP ALTER USE IMPORT REPLACE TRUNCATE APPEND REFRESH SET CACHE".split())
_GONE = ("SKIMQL_SPARK_GONE", "SKIMQL_SPARK_STOPPED")
_SET = re.compile(r"\s*SET\s+skimql\.(\w+)\s*=\s*(.+?)\s*;?\s*", re.IGNORECASE | re.DOTALL)


class Shell(Display):
    """What `\\` commands and the loop work with."""

    def __init__(self, request: Request, config: configuration.Config) -> None:
        super().__init__(config)
        self.request = request
        self.worker = Worker()
        self._session: Session | None = None
        self._session_fault: SkimqlError | None = None
        self._made = threading.Event()
        self.names = Names()
        self.last: str | None = None
        self.correction: str | None = None
        self.offered = ""
        self._reach = ""
        self._read: dict[str, float | None] = {}
        self.run_command: Callable[[str], None] = lambda text: None
        self.complete_command: Callable[[str], Iterable[tuple[str, int, str]]] = lambda text: ()
        self._leftover: Task | None = None
        self._spark_is_gone = False
        self._queries = {**kept_queries(), **{name: str(v.value) for name, v in config.queries.items()}}
        self.history = StatementHistory(state_folder() / "history.jsonl") if config["history"] else None
        self.editor: Editor = make_editor(self, self.history)

    def make_session(self) -> None:
        """Load what answers statements, and make the session: in the worker's thread, while the prompt is there."""
        try:
            # All that a first answer and completion need is loaded here, not at the first key.
            from ... import Session, Settings
            from .. import render, run  # noqa: F401
            from . import corrections, results  # noqa: F401
            from .completion.complete import complete

            complete("SELECT ", len("SELECT "), self.names)

            self._session = Session(
                settings=Settings().with_text(self.request.settings),
                listener=self.worker,
                catalog=self.request.catalog,
                spark_conf=self.request.conf,
            )
        except SkimqlError as fault:
            self._session_fault = fault
            self.tell_fault(fault)
        finally:
            self._made.set()

    @property
    def session(self) -> Session:
        """The session, as soon as it is there.

        Raises
        ------
        SkimqlError
            Where it could not be made.
        """
        self._made.wait()
        if self._session is None:
            raise self._session_fault or SkimqlError("there is no session")
        return self._session

    @property
    def spark_state(self) -> str:
        """``none``, ``starting``, ``ready``, or ``gone`` where a statement has found its JVM dead."""
        state = "none" if self._session is None else self._session.spark_state
        return "gone" if self._spark_is_gone and state == "ready" else state

    # What the editor looks at.

    def option(self, name: str) -> Any:
        """The value of a setting of the shell."""
        return self.config[name]

    def toolbar(self) -> str:
        """Spark's state, the catalog, tables, the error that is aimed at."""
        parts = [f"spark: {self.spark_state}"]
        if self._is_busy():
            parts.append("the cancelled statement is still ending")
        tables, sketches = len(self.names.tables), len(self.names.sketches)
        parts.append(f"{tables} table{'s' * (tables != 1)}, {sketches} sketch{'es' * (sketches != 1)}")
        if self._session is not None:
            error = self._session.settings.error
            parts.append("error none" if error is None else f"error {100 * error:g} %")
        if self.request.catalog:
            parts.append(f"catalog {self.request.catalog}")
        return " " + "   ".join(parts)

    def candidates(self, text: str, cursor: int) -> Iterable[tuple[str, int, str]]:
        """Completions at the cursor."""
        if text.startswith("\\"):
            return self.complete_command(text[:cursor])
        if not self._made.is_set():
            return []
        from .completion.complete import complete

        return [(c.text, c.start, c.about or c.kind) for c in complete(text, cursor, self.names, files)]

    def tell_fault(self, fault: BaseException, text: str = "") -> None:
        """What is wrong, and a correction for Enter where there is one."""
        if not isinstance(fault, SkimqlError):
            self.say(report(fault), "error")
            return
        self.say(fault.told(self.columns), "error")
        if fault.code in _GONE:
            self._spark_is_gone = True
            self.say("\\restart starts Spark anew; tables of files and settings are kept")
        from .corrections import correction

        self.correction = correction(fault, text, self.names) if text else None
        if self.correction is not None and is_dumb():
            self.say(f"Enter: {self.correction}")

    # Statements.

    def execute(self, text: str, *, remember: bool = True) -> None:
        """Run what was typed: a command, or statements; the first one that fails ends it."""
        self.correction = None
        if text.lstrip().startswith("\\"):
            self.run_command(text.strip())
            return
        from ...parser.statement import split_statements

        for statement in split_statements(text):
            if not self.statement(statement.sql, remember=remember):
                return

    def statement(self, sql: str, *, compare: bool = False, remember: bool = True) -> bool:
        """Ask one statement and show what it gives; whether it went well."""
        option = _SET.fullmatch(sql)
        if option is not None and option[1].lower() in configuration.OPTIONS:
            self.set_option(option[1].lower(), option[2].strip("'"))
            return True
        if not self._confirmed(sql):
            return False
        wall, cpu = time.perf_counter(), time.process_time()
        task = self.worker.submit(lambda: self._ask(sql, compare))
        over = self._await(task, "planning")
        answer = task.result
        if task.cancelled.is_set() and (not over or task.fault is not None):
            if task.estimate is None:
                kept = "ables, settings and kept sketches are as they were"
                self.say(f"cancelled; {'t' if over else 'it ends beside the prompt. T'}{kept}")
                return False
            from .refined import taken

            answer = taken(task.estimate)
            # How much of which tables was read until it was stopped is not known.
            self._reach, self._read = "", {"": None}
        elif task.fault is not None:
            self.tell_fault(task.fault, sql)
            return False
        self._tell(sql, answer, remember, time.perf_counter() - wall, time.process_time() - cpu)
        return True

    def _ask(self, sql: str, compare: bool) -> Answer:
        """In the worker's thread."""
        from ... import Answer, Message

        result = self.session.compare(sql) if compare else self.session.sql(sql)
        if isinstance(result, Answer):
            self._reach = self._what_would_reach(sql) if result.target in ("missed", "unknown") else ""
            self._read = self._tables_read(sql, result)
            return result
        if not result.columns:
            return Message((), (), exact=True)
        from ...engine.queries.exact import collected

        return collected(result, None if self._sink is not None else MOST_COLLECTED, self.worker)

    def _tables_read(self, sql: str, answer: Answer) -> dict[str, float | None]:
        """The tables of which something was read, with their tuples as far as these are known."""
        from .foot import tables_read

        with contextlib.suppress(SkimqlError, KeyError):
            tables = tables_read(answer)
            named = self.session.tables.named_in(sql) if tables is None else tables
            return {t: self.session.table_statistics(t).tuples for t in named}
        return {}

    def _what_would_reach(self, sql: str) -> str:
        """What the planner says of a query that missed its error: the cheapest other way, and the exact run."""
        with contextlib.suppress(SkimqlError):
            plan = self.session.plan(sql)
            if plan.choice is not None and plan.error is not None:
                return reaching(plan.choice.candidates, plan.choice.taken, plan.error, plan.confidence)
        return ""

    def _tell(self, sql: str, answer: Answer, remember: bool, wall: float, cpu: float) -> None:
        from ... import Message
        from .foot import foot

        if isinstance(answer, Message):
            for note in answer.notes:
                self.say(note)
        else:
            self.show(answer)
            for note in answer.notes:
                self.say(f"note: {note}")
            below = foot(answer, self._read, wall, cpu)
            if below:
                self.say(below)
            if answer.target in ("missed", "unknown"):
                self.say(
                    self._reach
                    or "wider than asked: \\size shows what more bytes would give, \\exact runs it exactly"
                )
            self.last_answer = answer
        if self.config["timing"]:
            self.say(f"{wall:.3f} s, {cpu:.3f} s of CPU in this process")
        if remember and _is_query(sql):
            self.last = sql
        if tokens(sql)[:1] and tokens(sql)[0].word in _CHANGES:
            self.load_names()

    def _confirmed(self, sql: str) -> bool:
        """Whether the user wants what takes something away; asked once, on a terminal."""
        words = [t.word for t in tokens(sql)[:3]]
        takes_away = words[:1] == ["DROP"] or words == ["CREATE", "OR", "REPLACE"]
        if not takes_away or not self.config["confirm"] or not sys.stdin.isatty():
            return True
        first = " ".join(sql.split()[:6])
        try:
            with typed_lines(anew=True), INTERRUPTS.raised():
                self._write(f"{encodes(sys.stdout, first)} ... really? [y/N] ")
                told = sys.stdin.readline()
        except KeyboardInterrupt:
            self._write("\n")
            return False
        if told.strip().lower() in ("y", "yes"):
            return True
        self.say("nothing done; SET skimql.confirm = false asks no more")
        return False

    # Waiting.

    def wait(self, work: Callable[[], Any], phase: str) -> Any:
        """What some work gives, done in the worker's thread; None where it was cancelled.

        Raises
        ------
        SkimqlError
            As the work.
        """
        task = self.worker.submit(work)
        if not self._await(task, phase) or isinstance(task.fault, KeyboardInterrupt):
            self.say("cancelled")
            return None
        if task.fault is not None:
            raise task.fault
        return task.result

    def _is_busy(self) -> bool:
        return self._leftover is not None and not self._leftover.done.is_set()

    def _await(self, task: Task, phase: str) -> bool:
        """Wait until a task is over, telling how far it is; whether it is, and was not left alone."""
        line = WaitingLine(sys.stderr)
        cancelled, estimate, above = 0.0, None, ""
        with contextlib.closing(line):
            while not task.done.wait(0.05):
                now = time.monotonic()
                if INTERRUPTS.take():
                    if cancelled and now - cancelled < TWICE:
                        self._leave_alone(task)
                        return False
                    cancelled = now
                    task.cancelled.set()
                    if self.spark_state == "starting":
                        threading.Thread(target=self.session.stop_spark, daemon=True).start()
                if cancelled and now - cancelled > PATIENCE:
                    self._leave_alone(task)
                    return False
                if task.estimate is not None and estimate is not task.estimate:
                    estimate = task.estimate
                    above = self._so_far(estimate)
                line.tick(self._phase(phase, bool(cancelled)), self.worker.progress, above)
        return True

    def _so_far(self, estimate: Answer) -> str:
        from .refined import so_far

        return so_far(estimate, self.screen(), shutil.get_terminal_size().lines)

    def _phase(self, phase: str, cancelled: bool) -> str:
        if cancelled:
            return CANCELLING
        if self._is_busy():
            return "the cancelled statement is still ending"
        return "starting Spark" if self.spark_state == "starting" else phase

    def _leave_alone(self, task: Task) -> None:
        task.cancelled.set()
        self._leftover = task

    # What the commands change.

    def set_option(self, name: str, value: str) -> None:
        """Set a setting of the shell or of queries.

        Raises
        ------
        SkimqlError
            ``SKIMQL_BAD_SETTING``.
        """
        self.config.set(name, value, "this shell")
        if name not in configuration.OPTIONS:
            self.session.settings = self.session.settings.with_text({name: value})

    def unset_option(self, name: str) -> None:
        """A setting as it is built in."""
        if name in configuration.OPTIONS:
            self.config.values[name] = configuration.Value(
                configuration.OPTIONS[name].default, configuration.BUILT_IN
            )
        else:
            from dataclasses import replace

            from ... import Settings

            self.session.settings = replace(self.session.settings, **{name: getattr(Settings(), name)})
            self.config.values.pop(name, None)

    def keep_query(self, name: str, sql: str) -> None:
        """Save a query under a name, for this and later shells."""
        if not sql or not name.isidentifier():
            raise SkimqlError("\\n keeps NAME = SQL", UNKNOWN, hint="\\n late = SELECT APPROXIMATE ...")
        self._queries[name] = sql
        if not is_secret(sql):
            keep(name, sql)
        self.refresh_names()

    def restart(self) -> None:
        """End Spark, whatever it does; it starts anew when needed."""
        self._spark_is_gone = False
        ended = threading.Event()

        def end() -> None:
            with contextlib.suppress(Exception):
                self.session.stop_spark()
            ended.set()

        threading.Thread(target=end, daemon=True).start()
        line = WaitingLine(sys.stderr)
        while not ended.wait(0.05):
            line.tick("ending Spark", None)
        line.close()
        self.say("Spark is ended; it starts anew when needed")

    # Tables and names.

    def register(self) -> Task | None:
        """Have the tables of the command line registered beside the prompt."""
        self.worker.submit(self.make_session)
        if not (self.request.demo or self.request.tables or self.request.first):
            self.load_names()
            self.worker.submit(self._warm_up)
            return None

        def work() -> None:
            from ...parser.statement import split_statements
            from ..run import register

            register(self.session, self.request)
            for text in self.request.first:
                for statement in split_statements(text):
                    self.session.sql(statement.sql)

        task = self.worker.submit(work)
        self.load_names()

        def told() -> None:
            task.done.wait()
            if task.fault is not None and not isinstance(task.fault, KeyboardInterrupt):
                self.tell_fault(task.fault)
            self.editor.invalidate()

        threading.Thread(target=told, daemon=True).start()
        return task

    def _warm_up(self) -> None:
        """Read a statement, and show a result to nobody: what the first ones load is there before they are."""
        from ... import Answer
        from ...parser.statement import is_approximate
        from .results import shown

        is_approximate("SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k ERROR WITHIN 1%")
        shown(Answer(("n",), ((1,),), exact=True), self.screen())

    def load_names(self) -> None:
        """Have the names looked up beside the prompt."""
        self.worker.submit(self.refresh_names)

    def refresh_names(self) -> None:
        """Look up tables, columns and sketches as they are now."""
        from .names import gather

        with contextlib.suppress(SkimqlError):
            names = gather(self.session, self._queries)
            # What takes long is made here, not at the next key.
            _ = names.all_columns, names.by_name
            self.names = names
        self.editor.invalidate()

    def first_page(self) -> None:
        """What to do where there are no tables yet."""
        self.say(
            "No tables yet. Three ways to begin:\n"
            "  \\demo             the flights tables, to try\n"
            "  \\t NAME=PATH      a Parquet, CSV or JSON file, or a folder, is a table\n"
            "  skimql FILE ...   the same from the command line\n"
            "Then: SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k;   \\? for more",
            "",
        )


# Rows of a statement of Spark's that are fetched for the terminal.
MOST_COLLECTED = 10_000


def _is_query(sql: str) -> bool:
    from ...parser.statement import is_approximate

    with contextlib.suppress(SkimqlError):
        if is_approximate(sql):
            return True
    return [t.word for t in tokens(sql)[:1]] in (["SELECT"], ["EXACT"], ["WITH"], ["FROM"], ["ESTIMATE"])
