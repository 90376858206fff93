"""The last query as other statements: without its clauses of accuracy, exact, tighter."""

from __future__ import annotations

from ... import Answer, Estimate, Token, tokens

_CLAUSES = frozenset(("ERROR", "SIZE", "USING", "OPTIONS", "SEED", "BEHAVIOR", "CONFIDENCE"))
_ACCURACY = frozenset(("ERROR", "SIZE"))


def _clauses(text: str) -> list[tuple[str, int, int]]:
    """Our clauses at the end of a SELECT: their first word, and where they start and end."""
    found = [t for t in tokens(text) if t.kind != "comment"]
    places: list[tuple[str, int]] = []
    depth = 0
    for number, token in enumerate(found):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and _begins(found, number):
            places.append((token.word, token.start))
    stop = found[-1].start if found and found[-1].text == ";" else len(text)
    ends = [*(start for _, start in places[1:]), stop][: len(places)]
    return [(word, start, end) for (word, start), end in zip(places, ends, strict=True)]


def _begins(found: list[Token], number: int) -> bool:
    token = found[number]
    after = found[number + 1] if number + 1 < len(found) else None
    before = found[number - 1] if number else None
    if (
        after is None
        or before is None
        or token.kind not in ("keyword", "ours")
        or token.word not in (*_CLAUSES, "WITH")
    ):
        return False
    if token.word == "ERROR":
        return after.word == "WITHIN"
    if token.word == "WITH":
        return after.word == "ERROR"
    if token.word == "USING":
        return after.text != "("
    if token.word == "OPTIONS":
        return after.text == "("
    if token.word == "BEHAVIOR":
        return after.kind == "text"
    return (
        after.kind == "number"
        and before.word not in ("WITH", "WITHIN")
        and before.text not in (",", ".", "=")
    )


def without_accuracy(text: str) -> str:
    """A query without ERROR, SIZE, and the CONFIDENCE that belongs to them."""
    return _without(text, (*_ACCURACY, "WITH", "CONFIDENCE"))


def bare(text: str) -> str:
    """A query without any clause of ours at its end."""
    return _without(text, (*_CLAUSES, "WITH"))


def exact(text: str) -> str:
    """A query as Spark runs it: ``EXACT SELECT``, without anything of ours; Spark's own as it stands."""
    plain = bare(text)
    for token in tokens(plain):
        if token.kind == "ours" and token.word in ("APPROXIMATE", "APPROX"):
            plain = plain[: token.start] + plain[token.end :].lstrip()
            break
    else:
        if plain == text.strip().rstrip(";").rstrip():
            return plain
    return plain if plain.split(None, 1)[0].upper() == "EXACT" else f"EXACT {plain}"


def _without(text: str, words: tuple[str, ...]) -> str:
    plain = text.rstrip().removesuffix(";").rstrip()
    for word, start, end in reversed(_clauses(plain)):
        if word in words:
            plain = f"{plain[:start].rstrip()} {plain[end:].lstrip()}".rstrip()
    return plain


def widest(answer: Answer) -> float | None:
    """The largest half width of an answer's intervals over their values; None where all is exact."""
    widths = [
        max(float(c.high) - float(c.value), float(c.value) - float(c.low)) / abs(float(c.value))
        for row in answer.rows
        for c in row
        if isinstance(c, Estimate) and not c.exact and c.value
    ]
    known = [w for w in widths if 0 < w < float("inf")]
    return max(known) if known else None


def tighter(text: str, answer: Answer | None, error: float | None) -> str | None:
    """The query for half the error that it had; None where there is no error to halve."""
    reached = widest(answer) if answer is not None else error
    if reached is None:
        return None
    half = f"{max(50 * reached, 0.01):.2g}"
    return f"{without_accuracy(text)} ERROR WITHIN {half}%"
