"""Whether the commands of docs/spark-sql.md run as they are written: ``python -m benchmarks.quick_start``.

Its blocks of commands, in the order in which they stand, in a folder with the tables that they name. One that ends
with ``&`` is a server: what follows is asked when it listens, a client of Spark Connect in Python too, and it is ended
then. (Its other blocks of Python are run by the suite.) Records: {block, seconds, ok}.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import surface_clients as clients

PAGE = Path(__file__).parents[1] / "docs" / "spark-sql.md"
REPORT = """CREATE TEMP VIEW flights AS SELECT * FROM parquet.`flights.parquet`;
CREATE TEMP VIEW planes AS SELECT * FROM parquet.`planes.parquet`;
SELECT APPROXIMATE COUNT(*) AS n FROM flights f JOIN planes p ON f.tailnum = p.tailnum;
"""
SECONDS = 300


def blocks() -> list[tuple[str, str]]:
    """(language, text) of each."""
    return re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def make_tables(folder: str) -> None:
    """What the page names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tails = [f"N{n % 7}" for n in range(60)]
    pq.write_table(
        pa.table({"tailnum": tails, "month": [n % 12 + 1 for n in range(60)]}), f"{folder}/flights.parquet"
    )
    pq.write_table(
        pa.table({"tailnum": sorted(set(tails))[:5], "year": [2001] * 5}), f"{folder}/planes.parquet"
    )
    (Path(folder) / "report.sql").write_text(REPORT)


def run_commands(text: str, folder: str, client: str = "") -> None:
    """Commands; servers among them run until the last, and for what follows the block."""
    servers = []
    try:
        for command in re.sub(r"\\\n\s*", " ", text).strip().splitlines():
            if command.endswith("&"):
                servers.append(_started(command[:-1], folder))
            else:
                _run(["bash", "-ec", command], folder)
        if client:
            _run([sys.executable, "-c", client], folder)
    finally:
        for server in servers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)
            server.wait(60)


def _started(command: str, folder: str) -> subprocess.Popen[bytes]:
    port = 15002 if "Connect" in command or "connect" in command else 10000
    log = (Path(folder) / "server.log").open("wb")
    server = subprocess.Popen(
        ["bash", "-ec", f"exec {command}"], cwd=folder, env=clients.environment(), stdout=log, stderr=log,
        start_new_session=True,
    )  # fmt: skip
    begun = time.monotonic()
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return server
        if server.poll() is not None or time.monotonic() - begun > SECONDS:
            raise RuntimeError((Path(folder) / "server.log").read_text()[-2000:])
        time.sleep(0.5)


def _run(command: list[str], folder: str) -> None:
    told = subprocess.run(
        command,
        cwd=folder,
        env=clients.environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if told.returncode or "SKIMQL_" in told.stdout or not re.search(r"\d", told.stdout):
        raise RuntimeError(f"{told.stdout[-1500:]}\n{told.stderr[-1500:]}")


def main() -> int:
    """Run all; 1 where one fails."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        make_tables(folder)
        found = blocks()
        for number, (language, text) in enumerate(found):
            if language == "python":
                continue
            following = found[number + 1][1] if number + 1 < len(found) else ""
            begun, ok = time.monotonic(), True
            try:
                run_commands(text, folder, following if ".remote(" in following else "")
            except (RuntimeError, subprocess.TimeoutExpired) as fault:
                print(fault)
                ok, bad = False, 1
            record = {"block": text.split("\n")[0], "seconds": round(time.monotonic() - begun), "ok": ok}
            print(json.dumps(record), flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
