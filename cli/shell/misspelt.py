"""Words of the dialect that are misspelt, told from names by what may stand at their place."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from ... import Token, tokens, vocabulary
from .completion.patterns import following
from .completion.place import pieces_of
from .names import Names

_CALLED = ("COUNT", "SUM", "AVG", "MIN", "MAX", "APPROX_COUNT_DISTINCT")
NEAR = 0.72
LEAST = 3


def respelt(text: str, names: Names) -> str | None:
    """The text with its misspelt words as they were probably meant; None where there are none.

    A word is misspelt where a word that may stand at its place is near to it, and it is itself neither a word nor the
    name of anything.
    """
    known = {n.lower() for t in (*names.tables, *names.streams) for n in (t.name, *(c for c, _ in t.columns))}
    corrected, found = text, 0
    while found < 5:
        token, word = next(_misspelt(corrected, known), (None, ""))
        if token is None:
            break
        corrected = corrected[: token.start] + word + corrected[token.end :]
        found += 1
    return corrected if found else None


def _misspelt(text: str, known: set[str]) -> Iterator[tuple[Token, str]]:
    seen = [t for t in tokens(text) if t.kind != "comment"]
    aliases = {seen[n + 1].text.lower() for n in range(len(seen) - 1) if seen[n].word == "AS"}
    for number, token in enumerate(seen):
        if token.kind != "name" or len(token.text) < LEAST or token.text.lower() in (known | aliases):
            continue
        before = seen[number - 1].text if number else ""
        after = seen[number + 1].text if number + 1 < len(seen) else ""
        if "." in (before, after):
            continue
        if after == "(":
            functions = [*_CALLED, *(f.upper() for f in vocabulary().functions)]
            near = get_close_matches(token.word, functions, 1, NEAR)
        else:
            near = get_close_matches(token.word, _words(seen, number), 1, NEAR)
        if near and near[0] != token.word:
            yield token, near[0]


def _words(seen: list[Token], number: int) -> list[str]:
    """The words that may stand at a place, one of several in each."""
    depth, start = 0, 0
    for n in range(number - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(seen[n].text, 0)
        if depth < 0 or (depth == 0 and seen[n].text == ";"):
            start = n + 1
            break
    told = following(pieces_of(seen[start:number]))
    return [w for phrase in told if not phrase.startswith("<") for w in phrase.split()[:1] if len(w) >= LEAST]
