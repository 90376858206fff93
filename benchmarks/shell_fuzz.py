"""Random things done to a shell: python -m benchmarks.shell_fuzz [--lines N] [--seed N] [--spark].

Statements, keys, pasted binary, commands with odd arguments, resizes, Ctrl-C and Ctrl-Z.
Fails where a traceback is on the screen, the prompt is not back within 5 s of a Ctrl-C, or the history is not whole.
Without ``--spark`` there is no Java, so that statements of Spark's fail at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.kept_catalog import two_sketches
from support.shell_fuzz import fuzz


def main() -> None:
    """Run it, and print the longest time to a prompt."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--spark", action="store_true")
    given = options.parse_args()
    if not given.spark:
        os.environ["JAVA_HOME"] = "/nonexistent"
        os.environ["PATH"] = "/nonexistent"
    with tempfile.TemporaryDirectory() as folder:
        catalog = str(two_sketches(Path(folder) / "catalog"))
        arguments = ["--catalog", catalog, *(["--demo"] if given.spark else [])]
        longest = fuzz(Path(folder), arguments, given.lines, given.seed)
    print(f"{given.lines} lines, seed {given.seed}: the prompt was back within {longest:.2f} s")


if __name__ == "__main__":
    main()
