"""`skimql doctor`: the checks as a list, a fault with what to do for it."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console

from ..engine.extension.jar import JDK_HINT, find
from ..engine.spark.doctor import checks


def print_doctor(file: TextIO | None = None) -> int:
    """Print every check; 0 if all passed, else 1. `file` stands for the terminal, in its colours."""
    console = Console(
        file=file,
        highlight=False,
        soft_wrap=True,
        force_terminal=None if file is None else sys.stdout.isatty(),
    )
    faults = 0
    for check in checks():
        mark = "[green]ok   [/green]" if check.ok else "[red]FAULT[/red]"
        console.print(f"{mark}  {check.name:<16} ", end="")
        console.print(check.found, markup=False)
        if not check.ok:
            faults += 1
            console.print(f"       do: {check.advice}", markup=False)
    jar = find()
    # Nothing else needs it: no fault.
    console.print(
        f"[green]ok   [/green]  {'Spark SQL':<16} " if jar else f"none   {'Spark SQL':<16} ", end=""
    )
    console.print(str(jar) if jar else "no jar: SkimQL was installed without a Java compiler", markup=False)
    if jar is None:
        console.print(f"       do: {JDK_HINT}", markup=False)
    console.print("all well" if not faults else f"{faults} fault{'s' if faults > 1 else ''}")
    return 1 if faults else 0
