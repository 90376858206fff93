"""What pages of documentation show to be typed, and whether what came of it is what they say.

A block is fenced: ``console`` holds commands behind ``$ `` with what they print, ``pycon`` a Python session behind ``>>> ``,
``python`` a script that prints nothing. A line in italics before a block says where it is not run, and why. Only the standard library is used: a
script that follows a page to the letter types its blocks in an environment that has nothing else.
"""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass, field

LANGUAGES = ("console", "pycon", "python")

_FENCE = re.compile(
    r"^(?P<marks>```+)(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=marks)\s*$", re.MULTILINE | re.DOTALL
)
_HIDDEN = re.compile(r"<!-- before:\n(.*?)-->", re.DOTALL)
_MARKER = re.compile(r"^\*(?:Run by `make test-docs` alone|(?P<never>Not run)): (?P<reason>[^*]+)\*$")


@dataclass(frozen=True)
class Step:
    """Something that is typed, and what comes of it; `hidden` steps prepare what the page takes for granted."""

    text: str
    expected: str
    language: str
    line: int


@dataclass(frozen=True)
class Block:
    """A block of a page with its steps; `reason` where the suite does not run it, `never` where nothing does."""

    language: str
    line: int
    steps: list[Step] = field(default_factory=list)
    reason: str = ""
    never: bool = False


def blocks(page: str) -> list[Block]:
    """The blocks of a page that can be run, and what prepares them, in the order in which they stand."""
    found = []
    for fence in _FENCE.finditer(page):
        language, text = fence["language"], fence["text"]
        if language in LANGUAGES:
            line = page.count("\n", 0, fence.start()) + 2
            before = page[: fence.start()].rstrip().rpartition("\n\n")[2].splitlines()
            marker = _MARKER.match(" ".join(before)) if before else None
            found.append(
                (
                    fence.start(),
                    Block(
                        language,
                        line,
                        _STEPS[language](text, line),
                        marker["reason"] if marker else "",
                        bool(marker and marker["never"]),
                    ),
                )
            )
    for hidden in _HIDDEN.finditer(page):
        line = page.count("\n", 0, hidden.start()) + 2
        found.append((hidden.start(), Block("before", line, [Step(hidden[1], "", "python", line)])))
    return [block for _, block in sorted(found, key=lambda f: f[0])]


def _commands(text: str, first: int) -> list[Step]:
    """Commands of a console, each up to where its quotes are closed; what stands before the next is its output."""
    steps: list[Step] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            raise ValueError(f"line {first + at}: output without a command")
        start, typed = at, lines[at][2:]
        while not _is_whole(typed):
            at += 1
            typed += "\n" + lines[at]
        at += 1
        end = next((i for i in range(at, len(lines)) if lines[i].startswith("$ ")), len(lines))
        steps.append(Step(typed, "\n".join(lines[at:end]).rstrip(), "console", first + start))
        at = end
    return steps


def _is_whole(typed: str) -> bool:
    if typed.endswith("\\"):
        return False
    try:
        shlex.split(typed, comments=True)
    except ValueError:
        return False
    return True


def _examples(text: str, first: int) -> list[Step]:
    """Examples of a Python session."""
    found = doctest.DocTestParser().get_examples(text)
    return [Step(e.source, (e.want or "").rstrip(), "pycon", first + e.lineno) for e in found]


def _script(text: str, first: int) -> list[Step]:
    return [Step(text, "", "python", first)]


_STEPS = {"console": _commands, "pycon": _examples, "python": _script}

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?")
_LASTED = re.compile(r"\b\d[\d,]*(?:\.\d+)? (ms|s|min)\b")
_RULE = re.compile(r"[─-]{3,}")
_BLANKS = re.compile(r"[ \t]+")
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
_WITH_WIDTH = re.compile(rf"({_NUMBER.pattern}) ± ({_NUMBER.pattern})")
_NAMED = re.compile(r'"(\w+)": (-?[\d.e+-]+)')


def difference(expected: str, actual: str) -> str:
    """What tells what came from what the page says; empty where nothing does that may not vary.

    A line of three dots stands for any lines, three dots within a line for any text. Blanks, times, rules of tables, and dates and times of day
    vary as they like; a value with an interval beside it may be any that its own and the page's interval have in common.
    """
    pattern, lines = _lines(expected), _lines(actual)
    if _match(pattern, lines):
        return ""
    at = next(
        (i for i, (p, a) in enumerate(zip(pattern, lines, strict=False)) if not _same(p, a)),
        min(len(pattern), len(lines)),
    )
    said = pattern[at] if at < len(pattern) else "nothing more"
    came = lines[at] if at < len(lines) else "nothing more"
    return f"the page says\n  {said}\nand there came\n  {came}\nof\n{actual}"


def _lines(text: str) -> list[str]:
    kept = [_plain(line) for line in text.splitlines()]
    return [line for line in kept if line.strip("─ ")]


def _plain(line: str) -> str:
    line = _RULE.sub("─", line)
    line = _LASTED.sub(r"0 \1", _TIME.sub("<time>", line))
    return _BLANKS.sub(" ", line).strip()


def _match(pattern: list[str], lines: list[str]) -> bool:
    if not pattern:
        return not lines
    if pattern[0] == "...":
        return any(_match(pattern[1:], lines[i:]) for i in range(len(lines) + 1))
    return bool(lines) and _same(pattern[0], lines[0]) and _match(pattern[1:], lines[1:])


def _same(said: str, came: str) -> bool:
    if said == came:
        return True
    if "..." in said and re.fullmatch(".*".join(re.escape(p) for p in said.split("...")), came):
        return True
    return _overlap(said, came)


def _overlap(said: str, came: str) -> bool:
    """Whether two lines differ in values alone whose intervals overlap."""
    ours, theirs = _WITH_WIDTH.findall(said), _WITH_WIDTH.findall(came)
    if ours and _WITH_WIDTH.sub("±", said) == _WITH_WIDTH.sub("±", came):
        return all(
            abs(_value(a) - _value(b)) <= _value(x) + _value(y)
            for (a, x), (b, y) in zip(ours, theirs, strict=True)
        )
    one, other = dict(_NAMED.findall(said)), dict(_NAMED.findall(came))
    bounded = {n for n in one if f"{n}_low" in one and f"{n}_high" in one}
    loose = bounded | {f"{n}_{end}" for n in bounded for end in ("low", "high")}
    if not bounded or list(one) != list(other) or any(one[n] != other[n] for n in one if n not in loose):
        return False
    return _NAMED.sub("", said) == _NAMED.sub("", came) and all(
        float(one[f"{n}_low"]) <= float(other[f"{n}_high"])
        and float(other[f"{n}_low"]) <= float(one[f"{n}_high"])
        for n in bounded
    )


def _value(text: str) -> float:
    return float(text.replace(",", ""))
