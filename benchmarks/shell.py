"""How fast the shell is: python -m benchmarks.shell --json FILE [--spark].

Records `{study, p50, p95, bar, unit, runs, met, load}`. A terminal (pexpect) types keys and waits for what must be on
the screen; CPU figures are of the process alone, so that they say something on a busy machine too. `--spark` adds what
needs a JVM.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pexpect

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.kept_catalog import QUERY, two_sketches
from support.terminal import Terminal

import skimql
from skimql.cli.shell.completion.complete import complete
from skimql.cli.shell.names import Names, Table

ESCAPES = re.compile(rb"\x1b(\[[0-9;?]*[A-Za-z]|[=>])")
SLOW = (
    "EXACT SELECT COUNT(*) FROM range(1000000) a JOIN range(1000000) b ON a.id % 7 = b.id % 7"
    " WHERE (a.id * b.id) % 11 = 3"
)
VIEWS = {
    "many": " UNION ALL ".join(f"SELECT {n} AS n" for n in range(300)),
    "wide": "SELECT id % 1000003 AS k, id % 7 AS g FROM range(200000000000)",
    "some": "SELECT id % 1000003 AS k, id % 11 AS v FROM range(1000000)",
}
ARROW = "rows come by Arrow"
# A statement that is in the phase for long, and what the waiting line says then.
PHASES = {
    # Of a thousand tables; it cannot be interrupted, and ends beside the prompt.
    "Spark plans": (f"SELECT COUNT(*) FROM ({' UNION ALL '.join(['FROM many'] * 3)})", "[a-z]+"),
    "the planner looks at tables": (
        "SELECT APPROXIMATE COUNT(*) FROM wide a JOIN some b ON a.k = b.k ERROR WITHIN 1%",
        "(pilot|count|counting|glance|most of a key)",
    ),
    "a table is scanned": (
        "SELECT APPROXIMATE COUNT(*) FROM wide a JOIN some b ON a.k = b.k USING skimmed",
        "scan wide",
    ),
    # Into a file, since the terminal takes the first rows only.
    ARROW: ("SELECT id, id % 7 AS g FROM range(100000000)", "reading the result"),
    "an exact run scans": (SLOW, "exact answer"),
}


def record(study: str, values: list[float], bar: float, unit: str = "s") -> dict[str, object]:
    """A study's figures, and the machine's load then; `bar` is what p95 must not exceed."""
    p50, p95 = np.percentile(values, [50, 95])
    return {
        "study": study,
        "p50": round(float(p50), 4),
        "p95": round(float(p95), 4),
        "bar": bar,
        "unit": unit,
        "runs": len(values),
        "met": bool(p95 <= bar),
        "load": round(os.getloadavg()[0], 1),
    }


def cpu_of(code: str, *arguments: str, cwd: str | None = None) -> float:
    """CPU seconds of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def starts(home: str, catalog: str, runs: int) -> list[dict[str, object]]:
    """From the start to the prompt, and the CPU that it takes to get there."""
    seen = []
    for _ in range(runs):
        started = time.perf_counter()
        terminal = Terminal(home, "--catalog", catalog)
        terminal.until("skimql>", 60)
        seen.append(time.perf_counter() - started)
        terminal.close()
    loads = "import prompt_toolkit, prompt_toolkit.shortcuts, rich.console, rich.table, typer"
    ratios = []
    for _ in range(runs):
        ours = cpu_of(
            "import skimql.cli.app, skimql.cli.config, skimql.cli.shell.loop, prompt_toolkit.shortcuts"
        )
        ratios.append(ours / cpu_of(loads))
    return [
        record("start to prompt", seen, 0.7),
        record("CPU of the prompt over importing prompt-toolkit, rich and typer", ratios, 2.0, "x"),
    ]


def quick(home: str, catalog: str, runs: int) -> list[dict[str, object]]:
    """The command that answers from a catalog, against importing what it cannot do without."""
    command = "import sys; from skimql.cli.main import run; run()"
    libraries = "import numpy, pyarrow.parquet, sqlglot"
    ratios = [
        cpu_of(command, "--catalog", catalog, "-c", QUERY, "-q", cwd=home) / cpu_of(libraries)
        for _ in range(runs)
    ]
    return [
        record("CPU of -c from a catalog over importing numpy, pyarrow.parquet and sqlglot", ratios, 2.0, "x")
    ]


def keys(terminal: Terminal, runs: int) -> list[float]:
    """From a key to the bytes that show it; drawing them is the terminal's own affair."""
    seen = []
    for number in range(runs):
        letter = b"abcdefghij"[number % 10 : number % 10 + 1]
        data = b""
        started = time.perf_counter()
        terminal.process.send(letter)
        while letter not in ESCAPES.sub(b"", data) and time.perf_counter() - started < 5:
            with contextlib.suppress(pexpect.TIMEOUT):
                data += terminal.process.read_nonblocking(1 << 16, timeout=1)
        seen.append(time.perf_counter() - started)
        terminal.take(data)
        if number % 10 == 9:
            terminal.keys("ctrl-u")
            terminal.rest(0.1)
    return seen


def answers(home: str, catalog: str, runs: int) -> list[dict[str, object]]:
    """Keys, and stored answers from Enter to the last line."""
    terminal = Terminal(home, "--catalog", catalog, lines=50, columns=120)
    terminal.until("2 sketches", 60)
    typed = keys(terminal, runs * 10)
    terminal.keys("ctrl-c")
    terminal.rest()
    seen = []
    for number in range(runs):
        query = QUERY.replace(" AS n", f" AS n{number}x")
        terminal.keys(query)
        terminal.rest(0.2)
        before = len(terminal.raw)
        started = time.perf_counter()
        terminal.keys("enter")
        # The foot line is the last of it.
        terminal.until(lambda t, n=before: b"of CPU here" in t.raw[n:], 20)
        seen.append(time.perf_counter() - started)
        terminal.rest(0.2)
    terminal.close()
    return [record("key to screen", typed, 0.03), record("stored answer, Enter to printed", seen, 0.06)]


def completion(runs: int) -> list[dict[str, object]]:
    """Completion with 1,000 tables of 100 columns."""
    names = Names(
        tuple(
            Table(f"table_{t:04}", tuple((f"column_{c:02}_of_{t:04}", "int") for c in range(100)))
            for t in range(1000)
        )
    )
    names.all_columns  # noqa: B018
    texts = (
        "SELECT column_5",
        "SELECT * FROM tab",
        "SELECT * FROM table_0001 a JOIN table_0002 b ON ",
        "SELECT * FROM table_0001 a JOIN table_0002 b ON a.col",
        "SELECT c4 FROM table_0500 WHERE of_0",
        "SELECT APPROXIMATE COUNT(*) FROM table_0001 a JOIN table_0002 b ON a.x = b.y ERR",
    )
    seen = []
    for _ in range(runs):
        for text in texts:
            started = time.perf_counter()
            complete(text, len(text), names)
            seen.append(time.perf_counter() - started)
    return [record("completion, 1,000 tables of 100 columns", seen, 0.03)]


def cancelled(terminal: Terminal, phase: str, runs: int) -> list[float]:
    """From Ctrl-C to the prompt, while a statement is in a phase; each one is over before the next."""
    statement, shown = PHASES[phase]
    seen = []
    if phase == ARROW:
        terminal.keys("\\o rows.csv", "enter")
    for number in range(runs):
        terminal.until(lambda t: "still ending" not in t.text, 120)
        before = len(terminal.raw)
        terminal.keys(statement, "enter")
        # Behind what is typed: a sign that turns, and the phase.
        told = re.compile(rb"\x1b\[2K[^ ]+ " + shown.encode())
        terminal.until(lambda t, n=before, told=told: told.search(t.raw, n), 120)
        end = time.monotonic() + 0.1 * (number % 8)
        while time.monotonic() < end:
            terminal._pump(0.02)
        before = len(terminal.raw)
        started = time.perf_counter()
        terminal.keys("ctrl-c")
        terminal.until(lambda t, n=before: b"skimql>" in t.raw[n:], 30)
        seen.append(time.perf_counter() - started)
        assert b"cancelled" in terminal.raw[before:], terminal.text
        terminal.rest(0.1)
    terminal.keys("\\o", "enter")
    return seen


def with_spark(home: str, runs: int) -> list[dict[str, object]]:
    """Keys while Spark starts and while a cancelled query still runs; Ctrl-C to the prompt in each phase."""
    first = Path(home) / "views.sql"
    first.write_text("".join(f"CREATE TEMPORARY VIEW {view} AS {text};\n" for view, text in VIEWS.items()))
    terminal = Terminal(home, "--init", str(first), lines=50, columns=120)
    terminal.until("spark: starting", 60)
    starting = keys(terminal, 40)
    terminal.keys("ctrl-c")
    terminal.until("3 tables", 300)
    records = [record("key to screen while Spark starts", starting, 0.03)]
    records += [
        record(f"Ctrl-C to prompt while {phase}", cancelled(terminal, phase, runs), 1.0) for phase in PHASES
    ]
    # What was cancelled and does not end is beside the prompt.
    terminal.keys(SLOW, "enter")
    terminal.until("exact answer", 120)
    terminal.keys("ctrl-c")
    terminal.until(lambda t: "skimql>" in t.screen.display[t.screen.cursor.y], 30)
    records.append(record("key to screen while a query runs", keys(terminal, 40), 0.03))
    terminal.close()
    return records


def long_results(home: str, rows: int) -> list[dict[str, object]]:
    """Results of many rows into a pipe: how fast they come, and what the process grows by meanwhile."""
    records = []
    query = f"SELECT id, id % 1000 AS k, id / 8 AS v, concat('row ', id % 97) AS t FROM range({rows})"
    command = "import sys; from skimql.cli.main import run; run()"
    for form in ("csv", "jsonl"):
        process = subprocess.Popen(
            [sys.executable, "-c", command, "-c", query, "-o", form, "-q"],
            stdout=subprocess.PIPE,
            cwd=home,
            env={**os.environ, "HOME": home},
        )
        assert process.stdout is not None
        began, lines, sizes, tail = 0.0, 0, [], b""
        while part := process.stdout.read1(1 << 20):
            began = began or time.perf_counter()
            lines += part.count(b"\n")
            tail = (tail + part)[-200:]
            if lines > rows / 10:
                sizes.append(resident(process.pid))
        took = time.perf_counter() - began
        last = f"{rows - 1},{(rows - 1) % 1000},{(rows - 1) / 8}".encode()
        if form == "jsonl":
            last = f'{{"id": {rows - 1}, "k": {(rows - 1) % 1000}, "v": {(rows - 1) / 8}'.encode()
        assert process.wait() == 0
        assert lines == rows + (form == "csv"), lines
        assert tail.splitlines()[-1].startswith(last), tail
        records.append(record(f"growth while {rows:,} rows become {form}", [max(sizes) - sizes[0]], 50, "MB"))
        records.append(record(f"time of a row of {rows:,} into {form}", [1e6 * took / rows], 5.0, "us"))
    return records


def resident(pid: int) -> float:
    """Megabytes that a process has in memory."""
    told = Path(f"/proc/{pid}/status").read_text()
    return int(told.partition("VmRSS:")[2].split()[0]) / 1024


def main() -> None:
    """Run the studies and write their records."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--spark", action="store_true")
    options.add_argument("--rows", type=int, default=10_000_000)
    given = options.parse_args()
    # As pip leaves the package that it installs.
    compileall.compile_dir(Path(skimql.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        home, catalog = folder, str(two_sketches(Path(folder) / "catalog"))
        os.environ.pop("NO_COLOR", None)
        records = [
            *completion(given.runs),
            *starts(home, catalog, given.runs),
            *quick(home, catalog, given.runs),
            *answers(home, catalog, given.runs),
            *(with_spark(home, given.runs) if given.spark else []),
            *(long_results(home, given.rows) if given.spark else []),
        ]
    for one in records:
        print(one)
    if given.json is not None:
        given.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
