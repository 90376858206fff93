"""`skimql jar`: where the jar of the Spark SQL extension is, and building it where there was no compiler before."""

from __future__ import annotations

import sys

from ..engine.extension.jar import JDK_HINT, NotBuilt, build, find, own_place


def print_jar(build_it: bool) -> int:
    """Print the path of the jar; 0, or 1 where there is none and it cannot be built."""
    path = find()
    if path is None and build_it:
        try:
            path = build(own_place())
        except (NotBuilt, OSError) as fault:
            print(f"error: {fault}\n  try: {JDK_HINT}", file=sys.stderr)
            return 1
    if path is None:
        print(
            f"error: SkimQL was installed where there was no Java compiler\n  try: {JDK_HINT}",
            file=sys.stderr,
        )
        return 1
    print(path)
    return 0
