"""Random things done to a shell on a terminal, line by line; after each the prompt must be there again."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from pathlib import Path

from .completion_cases import CASES, STATEMENTS
from .terminal import Terminal

COMMANDS = (
    "d dt dv t demo sketches views queries explain plan exact compare tighten size plot x timing pager theme o copy i n"
    " set unset history doctor ? watch e"
).split()
ODD = (
    "", "''", "'", '"', "`", "`a b`", "..", "/", "/dev/null", "/no/such", ".", "~", "~nosuch/x", "-1", "0", "1e999", "nan",
    "orders", "lines", "ORDERS", "order s", "x=y", "=", "a=", "=b", "on", "off", "auto", "none", "%s", "{0}", "$1", "$(x)",
    "\\", "\\\\", ";", "--", "*", "[", "(?", "é", "表", "🙂", "\u202e", "a" * 3000, "error 5%", "error none", "seed 1",
    "rows = 0", "editing vi", "editing emacs", "enter semicolon", "enter complete", "catalog /no/such", "x.csv", "q.parquet",
    "q = SELECT 1 AS one", "q 1 2 3", "out.png", "0.01", "late = ", "theme light", "expanded on", "expanded auto",
)  # fmt: skip
KEYS = (
    "\t", "\t\t", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\x1b[3~", "\x01", "\x02", "\x05",
    "\x06", "\x08", "\x0b", "\x0c", "\x0e", "\x10", "\x12", "\x13\x11", "\x14", "\x15", "\x16", "\x17", "\x18\x18", "\x19", "\x1b", "\x1bb",
    "\x1bf", "\x1bd", "\x1b\r", "\x1bOP", "\x1b[15~", "\x1b[1;5D", "\x1b[1;2A", "\x1b[Z", "\x1b.", "\x1bu", "\x1f", "\x00", "\x7f", "\x1b5", "(",
    ")", "'", "`", "\x1b[M !!", "\x1b[<0;1;1M", "\x1b[200~", "\x1b[201~", "\x1b[I", "\x1b]0;x\x07",
)  # fmt: skip
# What must not be on the screen, whatever was typed.
NEVER = (
    "Traceback",
    "a fault of SkimQL itself",
    "Py4J",
    "Exception in thread",
    "Exception ignored",
    "\tat ",
    "WARN ",
)


class Failure(AssertionError):
    """What was done, and what was seen."""


def line_of(draw: random.Random) -> tuple[str, object]:
    """A kind of thing to do, and what."""
    kind = draw.choices(
        ("statement", "mutated", "command", "keys", "binary", "paste", "resize", "ctrl-c", "ctrl-z", "words"),
        (5, 6, 8, 6, 3, 2, 2, 2, 1, 3),
    )[0]
    texts = (*STATEMENTS, *(c.partition("->")[0].replace("|", "") for c in CASES))
    match kind:
        case "statement":
            return kind, draw.choice(texts)
        case "mutated":
            return kind, mutated(draw, draw.choice(texts))
        case "words":
            words = " ".join(STATEMENTS).split()
            return kind, " ".join(draw.choices(words, k=draw.randint(1, 30)))
        case "command":
            return kind, f"\\{draw.choice(COMMANDS)} {draw.choice(ODD)}"
        case "keys":
            pieces = [
                draw.choice(KEYS) if draw.random() < 0.7 else draw.choice(texts)[:20] for _ in range(12)
            ]
            return kind, "".join(pieces)
        case "binary":
            data = bytes(draw.randrange(256) for _ in range(draw.randint(1, 400)))
            # What would leave, stop or suspend is done by itself.
            return kind, data.translate(None, b"\x03\x04\x1a\x1c\x1b").replace(b"\x1b[201~", b"")
        case "paste":
            return kind, "\n".join(mutated(draw, draw.choice(texts)) for _ in range(draw.randint(1, 60)))
        case "resize":
            return kind, (draw.choice((1, 2, 10, 40, 80, 160, 400)), draw.choice((1, 2, 5, 24, 50)))
    return kind, None


def mutated(draw: random.Random, text: str) -> str:
    """The text with a few changes."""
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(text))
        match draw.randrange(5):
            case 0:
                text = text[:at]
            case 1:
                text = text[:at] + draw.choice("'\"`();,.*=%-/\\\n\t $@é表🙂\x07") + text[at:]
            case 2:
                text = text[:at] + text[at + draw.randint(1, 9) :]
            case 3:
                text = text[at:] + text[:at]
            case 4:
                text = (
                    text[:at]
                    + draw.choice((" SELECT ", " FROM ", " 9e999 ", "0" * 400, " WITH ", "--", "/*", "*/"))
                    + text[at:]
                )
    return text


def fuzz(
    home: Path, arguments: list[str], lines: int, seed: int, told=lambda number, kind, what, seconds: None
) -> float:
    """Do so many lines of random things to one shell; the longest time to the prompt.

    Raises
    ------
    Failure
        Where the prompt is not there in time, something is on the screen that must not be, or the history is not whole.
    """
    draw = random.Random(seed)
    work = home / "work"
    work.mkdir(exist_ok=True)
    (work / "x.csv").write_text("id,n\n1,10\n2,20\n")
    terminal = Terminal(home, *arguments, cwd=work, environment={"EDITOR": "true", "VISUAL": "true"})
    try:
        terminal.until("skimql>", 30)
        longest, before = 0.0, 0
        for number in range(lines):
            kind, what = line_of(draw)
            do(terminal, kind, what, draw)
            took = back(terminal, number, kind, what)
            longest = max(longest, took)
            told(number, kind, what, took)
            seen = terminal.raw[before:].decode("utf-8", "replace")
            before = len(terminal.raw)
            for word in NEVER:
                if word in seen and not (isinstance(what, str) and word in what):
                    raise Failure(
                        f"seed {seed}, line {number}: {kind} {what!r} shows {word!r}:\n{seen[-3000:]}"
                    )
        terminal.keys("\x03", "\\set enter complete", "\r", "\\set editing emacs", "\r", "\\q", "\r")
        end = time.monotonic() + 10
        while terminal.process.isalive() and time.monotonic() < end:
            terminal.rest(0.05)
        if terminal.process.isalive():
            raise Failure("the shell does not leave")
        history = (home / ".local/state/skimql/history.jsonl").read_bytes().splitlines()
        entries = [json.loads(line) for line in history]
        marks = [e for e in entries if e.startswith("\\! echo mark")]
        wanted = [f"\\! echo mark{n}z" for n in range(lines)]
        missing = sorted(set(wanted) - set(marks))
        if missing:
            raise Failure(f"not in the history: {missing[:5]}")
        return longest
    finally:
        terminal.close()


def do(terminal: Terminal, kind: str, what: object, draw: random.Random) -> None:
    """Do a thing."""
    match kind:
        case "statement" | "mutated" | "words" | "command":
            terminal.keys(str(what).replace("\n", "\x1b\r").replace("\t", " "), "\r")
            terminal.rest(draw.choice((0.0, 0.02, 0.1)))
            if draw.random() < 0.2:
                terminal.keys("\r")
        case "keys":
            terminal.keys(str(what))
        case "binary":
            assert isinstance(what, bytes)
            terminal.process.send(b"\x1b[200~" + what + b"\x1b[201~" if draw.random() < 0.7 else what)
        case "paste":
            terminal.paste(str(what))
            if draw.random() < 0.5:
                terminal.keys("\r")
        case "resize":
            assert isinstance(what, tuple)
            terminal.resize(*what)
        case "ctrl-c":
            terminal.keys("\x03" * draw.randint(1, 4))
        case "ctrl-z":
            terminal.keys("\x1a")
            terminal.rest(0.05)
            os.kill(terminal.process.pid, signal.SIGCONT)


def back(terminal: Terminal, number: int, kind: str, what: object) -> float:
    """Ctrl-C, then a command whose output must come; seconds until it did.

    On a busy machine a shell that works for it has more time: it hangs once it has used five seconds itself, or none.
    """
    started, cpu = time.monotonic(), cpu_of(terminal.process.pid)
    mark = f"mark{number}z"
    # Not the echo of what was typed at a question.
    output = re.compile(rf"(?<!echo ){mark}\r\n".encode())
    if isinstance(what, tuple):
        terminal.resize(80, 24)
    sent = 0.0
    while True:
        waited, used = time.monotonic() - started, cpu_of(terminal.process.pid) - cpu
        if waited > PATIENCE and (used > PATIENCE or waited > 6 * PATIENCE):
            told = f"{terminal.text}\n{terminal.raw[-800:]!r}"
            raise Failure(
                f"line {number}: {kind} {what!r}: no prompt after {waited:.0f} s, {used:.1f} of CPU:\n{told}"
            )
        if time.monotonic() - sent > 1.0 and (used < 1.0 or not sent):
            # A paste that was begun ends. Keys that come while something ends may be lost: a user presses them again.
            terminal.keys(*(["\x1b[201~"] if kind in ("keys", "binary") else []), "\x03")
            terminal.rest(0.03)
            if not output.search(terminal.raw[-4000:]):
                terminal.keys(f"\\! echo {mark}", "\r")
            sent = time.monotonic()
        terminal._pump(0.02)
        if output.search(terminal.raw[-4000:]):
            return time.monotonic() - started
        if not terminal.process.isalive():
            raise Failure(f"line {number}: {kind} {what!r} ends the shell:\n{terminal.scrolled[-3000:]}")


PATIENCE = 5.0


def cpu_of(process: int) -> float:
    """CPU seconds of a process so far."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
