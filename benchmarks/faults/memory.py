"""Spark out of memory: the driver, tasks in it, and an executor of its own; a process each, with a small heap.

Each try must end within `MOST_SECONDS` in an error of SkimQL's with a way out, without a traceback; what the catalog
keeps is there afterwards, and answers in the same process, whether or not the JVM has survived.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from .record import Tally

TRIES = 10
MOST_SECONDS = 180.0

LOCAL = {"spark.master": "local[2]", "spark.driver.memory": "512m"}
CLUSTER = {
    "spark.master": "local-cluster[1,1,512]",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": "2",
    "spark.ui.enabled": "false",
}
SMALL = "FROM t a JOIN t b ON a.k = b.k"
# 263 MB of counters, just within skimql.max_bytes.
HUGE = "OPTIONS (rows = 501, buckets = 65536, sparse = false)"
# What takes more memory than there is: in a task, in the driver, in a broadcast, in an executor.
CASES = {
    "a value in a task": (LOCAL, f"SELECT APPROXIMATE SUM(length(repeat(a.s, 2000000000))) {SMALL}"),
    "values of groups in the driver": (
        LOCAL,
        f"SELECT APPROXIMATE repeat(a.s, 90000000 + a.k) AS g, COUNT(*) {SMALL} GROUP BY repeat(a.s, 90000000 + a.k)",
    ),
    "a list in an exact run": (
        LOCAL,
        "EXACT SELECT size(collect_list(repeat(s, 3000000 + id % 7))) FROM t, range(1000)",
    ),
    "a kept sketch": (LOCAL, "CREATE SKETCH big ON t (repeat(s, 2000000000) CLASS x)"),
    "counters in a Python worker": (
        {**LOCAL, "spark.executor.pyspark.memory": "1g"},
        f"CREATE SKETCH big ON t (k) {HUGE}",
    ),
    "counters in this process": ({**LOCAL, "limit": "200"}, f"CREATE SKETCH big ON t (k) {HUGE}"),
    "counters of a query in this process": (
        {**LOCAL, "limit": "1"},
        f"SELECT APPROXIMATE COUNT(*) {SMALL} {HUGE}",
    ),
    "a value in an executor": (CLUSTER, f"SELECT APPROXIMATE SUM(length(repeat(a.s, 2000000000))) {SMALL}"),
    "a list in an executor": (
        CLUSTER,
        "EXACT SELECT size(collect_list(repeat(s, 3000000 + id % 7))) FROM t, range(1000)",
    ),
    "counters in an executor's worker": (
        {**CLUSTER, "spark.executor.pyspark.memory": "300m"},
        f"CREATE SKETCH big ON t (k) {HUGE}",
    ),
}

CHILD = """
import json, os, resource, sys
from skimql import Session, SkimqlError
from skimql.engine.spark.session import start_spark
folder, settings, text = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
limit = int(settings.pop("limit", 0))
spark = start_spark({**settings, "spark.sql.shuffle.partitions": "1"})
session = Session(spark, catalog=folder)
session.table("t", f"{os.path.dirname(folder)}/t.csv")
session.sql("CREATE SKETCH ta ON t (k)")
KEPT = "SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k"
told = {}
if limit:
    # What is mapped already, and so many MB more.
    pages = int(open("/proc/self/statm").read().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (limit << 20), before[1]))
try:
    found = session.sql(text)
    told["answered"] = str(found)[:200]
except SkimqlError as error:
    told.update(code=error.code, message=error.message, hint=error.hint, shown=str(error))
except BaseException as fault:
    told["crash"] = f"{type(fault).__name__}: {fault}"[:300]
if limit:
    resource.setrlimit(resource.RLIMIT_AS, before)
told["sketches"] = [row["sketch"] for row in Session(catalog=folder).sql("SHOW SKETCHES").records()]
again = Session(catalog=folder)
try:
    told["kept"] = again.sql(KEPT).value
except BaseException as fault:
    told["kept"] = f"{type(fault).__name__}: {fault}"[:300]
print(json.dumps(told), flush=True)
"""


def run(tries: int, seed: int, folder: Path) -> Tally:
    """Run out of memory in the first `tries` of `CASES`."""
    tally = Tally("memory")
    (folder / "t.csv").write_text("k,s\n" + "".join(f"{n},x\n" for n in range(6)))
    for number, (name, (settings, text)) in enumerate(list(CASES.items())[:tries]):
        started = time.perf_counter()
        home = folder / f"catalog{number}"
        fault, kept = _tried(home, json.dumps(settings), text)
        seconds = time.perf_counter() - started
        tally.tries += 1
        tally.ours += not fault
        tally.slowest_seconds = max(tally.slowest_seconds, seconds)
        if fault:
            tally.crashes.append(f"{name}: {fault}")
        if kept:
            tally.lost.append(f"{name}: {kept}")
    return tally


def _tried(home: Path, settings: str, text: str) -> tuple[str, str]:
    """What is wrong with how a statement ended, and with what is kept; empty where nothing is."""
    command = [sys.executable, "-c", CHILD, str(home), settings, text]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no end within {MOST_SECONDS:.0f} s", ""
    lines = done.stdout.splitlines()
    if not lines or not lines[-1].startswith("{"):
        return f"exit code {done.returncode}: {(done.stderr or done.stdout)[-300:]}", ""
    told = json.loads(lines[-1])
    kept = "" if told["kept"] == 6 else f"the kept sketch gives {told['kept']}"
    if told["sketches"] != ["ta"]:
        kept = f"{kept} the catalog has {told['sketches']}".strip()
    if "code" not in told:
        return str(told), kept
    if not told["hint"]:
        return f"no way out: {told['shown']}", kept
    if any(word in told["shown"] + done.stderr for word in ("Traceback", "Py4J", "py4j")):
        return f"words of the inside: {told['shown']} {done.stderr[-300:]}", kept
    return "", kept
