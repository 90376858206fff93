"""Files in FROM: ``FROM 'flights.parquet'`` names a table, as in other engines; Spark knows no such thing."""

from __future__ import annotations

from collections.abc import Callable

from .tokens import FUNCTION, KEYWORD, NAME, TEXT, Token, tokens

_HEADS = frozenset(("SELECT", "WITH", "EXACT", "EXPLAIN", "ESTIMATE", "FROM"))


def with_file_tables(text: str, is_file: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
    """The statement with backticks around files in FROM and JOIN, every offset as it was; and the files.

    Parameters
    ----------
    text : str
        One statement.
    is_file : callable
        Whether a text names something that can be read as a table.
    """
    if "'" not in text:
        return text, ()
    found = [t for t in tokens(text) if t.kind != "comment"]
    if not found or found[0].word not in _HEADS:
        return text, ()
    files: dict[str, None] = {}
    called: list[bool] = []
    for number, token in enumerate(found):
        if token.text == "(":
            called.append(number > 0 and found[number - 1].kind in (FUNCTION, NAME))
        elif token.text == ")" and called:
            called.pop()
        elif _is_table(found, number) and not (called and called[-1]):
            path = token.text[1:-1]
            if not set(path) & set("\\`'\"") and is_file(path):
                text = f"{text[: token.start]}`{path}`{text[token.end :]}"
                files[path] = None
    return text, tuple(files)


def _is_table(found: list[Token], number: int) -> bool:
    """Whether a text stands where a table does: not behind ``EXTRACT(YEAR FROM``, which is a call."""
    token, before = found[number], found[number - 1] if number else None
    return (
        token.kind == TEXT
        and token.text[0] == "'"
        and before is not None
        and before.kind == KEYWORD
        and before.word in ("FROM", "JOIN")
    )
