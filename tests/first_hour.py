"""A newcomer's first hour: the tutorial's blocks, typed in a fresh environment and an empty folder, as the page has them.

    python tests/first_hour.py [--python python3] [--json FILE] [--environment DIR]

Builds a wheel of this checkout, installs it by pip, and types what docs/tutorial.md says, block after block, on a terminal
of 120 columns. Held are: that every command prints what the page says, that nothing is left behind in the folder or in the
home but what the page names, and two times from the end of the installation: to the first estimate, to the first
answer from the catalog. Records ``{study, seconds, bar}``; exits with 1 where anything is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from support.blocks import Step, blocks, difference

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
# Seconds from the end of the installation.
BARS = {"first estimate": 60.0, "first stored answer": 120.0}
# What the page names, below the home: the demo tables, the shell's history.
NAMED = (".cache/skimql/nycflights13/", ".local/state/skimql/")
_SHOWS = {
    "first estimate": re.compile(r"\d ± \d"),
    "first stored answer": re.compile(r"from the (kept )?sketches"),
}
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Typist:
    """Types steps in a folder, and remembers when what it waits for was first seen."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.started = time.monotonic()
        self.seen: dict[str, float] = {}

    def console(self, text: str) -> str:
        """Run a command as bash reads it: stdout a terminal, stderr told after it."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (50, 120))
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                ["bash", "-c", text],
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=said,
                cwd=self.folder,
                env=self.environment,
            )
            os.close(theirs)
            told = b""
            while True:
                if select.select([ours], [], [], 0.1)[0]:
                    try:
                        told += os.read(ours, 1 << 16)
                    except OSError:
                        break
                    self._look(told)
                elif process.poll() is not None:
                    break
            process.wait()
            os.close(ours)
            said.seek(0)
            told += said.read()
        self._look(told)
        return _ESCAPES.sub("", told.decode("utf-8", "replace"))

    def python(self, steps: list[Step]) -> list[str]:
        """What each step of a Python session prints."""
        script = self.folder.parent / "session.py"
        mark = "@@ next step"
        script.write_text(
            "".join(f"exec(compile({s.text!r}, 'step', 'single'))\nprint({mark!r})\n" for s in steps),
            encoding="utf-8",
        )
        done = subprocess.run(
            ["python", str(script)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        script.unlink()
        told = done.stdout.split(f"{mark}\n")
        return [*told[: len(steps)], *[done.stderr] * (len(steps) - len(told) + 1)][: len(steps)]

    def _look(self, told: bytes) -> None:
        text = told.decode("utf-8", "replace")
        for study, shows in _SHOWS.items():
            if study not in self.seen and shows.search(text):
                self.seen[study] = time.monotonic() - self.started


def main() -> int:
    """Install, type, compare; the exit code."""
    sys.stdout.reconfigure(line_buffering=True)
    asked = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    asked.add_argument("--python", default=sys.executable, help="the Python of the fresh environment")
    asked.add_argument("--json", type=Path, help="records go there")
    asked.add_argument(
        "--environment", type=Path, help="an environment that is there already, for trying this script"
    )
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        began = time.monotonic()
        environment = given.environment or _installed(base, given.python)
        print(f"installed in {time.monotonic() - began:.0f} s")
        return _hour(base, environment.resolve(), given.json)


def _installed(base: Path, python: str) -> Path:
    """A fresh environment with a wheel of this checkout, as the page says."""
    copy = base / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "build", "site", "*.egg-info"))
    target = base / "venv"
    subprocess.run([python, "-m", "venv", str(target)], check=True)
    pip = [str(target / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(base / "wheels"), str(copy)], check=True)
    (wheel,) = (base / "wheels").glob("skimql-*.whl")
    subprocess.run([*pip, "install", f"skimql[demo] @ {wheel.as_uri()}"], check=True)
    return target


def _hour(base: Path, environment: Path, records: Path | None) -> int:
    folder, home = base / "folder", base / "home"
    folder.mkdir()
    home.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SKIMQL_", "XDG_", "PYTHON"))}
    typist = Typist(
        folder,
        {
            **kept,
            "HOME": str(home),
            "PATH": f"{environment}/bin:{kept['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
        },
    )
    faults = []
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if block.never or block.language == "before":
            continue
        told = typist.python(block.steps) if block.language == "pycon" else None
        for at, step in enumerate(block.steps):
            came = told[at] if told is not None else typist.console(step.text)
            came = came.replace(f"{folder}/", "").replace(str(home), "~")
            fault = difference(step.expected, came)
            print(
                f"{time.monotonic() - typist.started:6.1f} s  line {step.line}: {fault if fault else 'as it says'}"
            )
            faults += [step.line] if fault else []
    left = [str(p.relative_to(folder)) for p in folder.rglob("*")]
    left += [
        found
        for p in home.rglob("*")
        if p.is_file() and not (found := str(p.relative_to(home))).startswith(NAMED)
    ]
    print(f"left behind: {left or 'nothing but what the page names'}")
    shown = [
        {"study": study, "seconds": round(typist.seen.get(study, float("inf")), 1), "bar": bar}
        for study, bar in BARS.items()
    ]
    for record in shown:
        print(f"{record['study']}: {record['seconds']} s (bar {record['bar']:.0f} s)")
    if records is not None:
        records.write_text("".join(json.dumps(r) + "\n" for r in shown), encoding="utf-8")
    missed = [r for r in shown if r["seconds"] > r["bar"]]
    return int(bool(faults or left or missed))


if __name__ == "__main__":
    sys.exit(main())
