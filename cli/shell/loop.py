"""The loop of the shell: read, run, and never leave but when asked to."""

from __future__ import annotations

import sys

from ... import SkimqlError, __version__
from ...engine.spark.scratch import watch
from ..config import Config
from ..crash import report
from ..request import Request
from . import meta
from .interrupts import INTERRUPTS
from .keyboard import kept_keys
from .names import files
from .shell import Shell

DONE = 0
_BARE = {"help": "\\?", "quit": "\\q", "exit": "\\q"}


def run_shell(request: Request, config: Config) -> int:
    """Run the shell on this terminal; the exit code."""
    try:
        shell = Shell(request, config)
    except SkimqlError as fault:
        print(fault, file=sys.stderr)
        return 1
    shell.run_command = lambda text: meta.run(shell, text)
    shell.complete_command = lambda text: meta.complete(text, shell.names, files)
    if not request.quiet:
        shell.say(f"skimql {__version__}   \\? help   \\q leave", "")
        for note in config.notes:
            shell.say(f"note: {note}")
        if not (request.tables or request.demo or request.catalog):
            shell.first_page()
    INTERRUPTS.install()
    # Spark starts in another thread, where no signal can be handled: the folders that it makes go with the terminal.
    watch()
    with kept_keys():
        return _until_left(shell)


def _until_left(shell: Shell) -> int:
    shell.register()
    while True:
        try:
            if not _one(shell):
                return DONE
        except KeyboardInterrupt:
            # At the prompt the line is cleared, and that is all.
            continue
        except SkimqlError as fault:
            shell.tell_fault(fault)
        except Exception as fault:
            shell.say(report(fault), "error")


def _one(shell: Shell) -> bool:
    """Read and run one statement; whether to go on."""
    offered, shell.offered = shell.offered, ""
    try:
        text = shell.editor.read(offered)
    except EOFError:
        return False
    bare = text.strip().rstrip(";").strip().lower()
    try:
        shell.execute(_BARE.get(bare, text))
    except EOFError:
        return False
    except SkimqlError as fault:
        shell.tell_fault(fault, text.strip())
    return True
