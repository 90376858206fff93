"""Join graphs and plans as trees in the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_SIGNS = ("├ ", "└ ", "│ ", "  ")
_PLAIN = ("+ ", "` ", "| ", "  ")


def drawn(text: str, told: str, *, unicode: bool = True) -> list[str]:
    """What EXPLAIN tells, its join graph and its plan as trees.

    Parameters
    ----------
    text, told : str
        Of EXPLAIN [ANALYZE], and of EXPLAIN FORMAT JSON.
    unicode : bool
        Whether the terminal has signs for it.
    """
    lines = text.split("\n")
    graph = join_tree(json.loads(told), unicode=unicode)
    if graph and lines[0].startswith("join graph"):
        rest = next((n for n, line in enumerate(lines) if n and not line.startswith(" ")), len(lines))
        return [lines[0], *graph, "", *as_tree(lines[rest:], unicode=unicode)]
    return as_tree(lines, unicode=unicode)


def join_tree(told: Mapping[str, Any], *, unicode: bool = True) -> list[str]:
    """The join graph of EXPLAIN FORMAT JSON as a tree from the table with most joins; other edges stand below.

    Nothing where there is no graph.
    """
    vertices: Sequence[Mapping[str, Any]] = told.get("vertices") or ()
    edges: Sequence[Mapping[str, Any]] = told.get("edges") or ()
    if not vertices:
        return []
    degree = [sum(v in (e["left"], e["right"]) for e in edges) for v in range(len(vertices))]
    lines: list[str] = []
    seen: set[int] = set()
    used: set[int] = set()
    signs = _SIGNS if unicode else _PLAIN

    def draw(vertex: int, label: str, before: str, behind: str) -> None:
        seen.add(vertex)
        lines.append(f"{before}{label}{_vertex(vertices[vertex])}")
        own = [n for n, e in enumerate(edges) if vertex in (e["left"], e["right"]) and n not in used]
        inner = [(n, _other(edges[n], vertex)) for n in own]
        inner = [(n, o) for n, o in inner if o not in seen]
        for n, o in inner:
            if o in seen:
                continue
            used.add(n)
            rest = [x for x in inner if x[1] not in seen and x[1] != o]
            label = f"{_condition(edges[n], vertices, o)}  "
            draw(
                o,
                label,
                behind + signs[0 if rest else 1],
                behind + signs[2 if rest else 3],
            )

    for vertex in sorted(range(len(vertices)), key=lambda v: -degree[v]):
        if vertex not in seen:
            draw(vertex, "", "", "")
    lines += [f"and {_condition(e, vertices, e['right'])}" for n, e in enumerate(edges) if n not in used]
    return lines


def _other(edge: Mapping[str, Any], vertex: int) -> int:
    return int(edge["right"] if edge["left"] == vertex else edge["left"])


def _vertex(vertex: Mapping[str, Any]) -> str:
    table, alias = str(vertex["table"]), str(vertex.get("alias") or "")
    name = table if not alias or alias.lower() == table.lower() else f"{table} {alias}"
    return f"{name} where {_plain(vertex['filter'])}" if vertex.get("filter") else name


def _condition(edge: Mapping[str, Any], vertices: Sequence[Mapping[str, Any]], far: int) -> str:
    near = _other(edge, far)
    keys = {edge["left"]: edge["left_keys"], edge["right"]: edge["right_keys"]}
    names = [str(vertices[v].get("alias") or vertices[v]["table"]) for v in (near, far)]
    pairs = zip(keys[near], keys[far], strict=True)
    return " and ".join(f"{names[0]}.{_plain(a)} = {names[1]}.{_plain(b)}" for a, b in pairs)


def _plain(text: object) -> str:
    return str(text).replace("`", "")


def as_tree(lines: Sequence[str], *, unicode: bool = True) -> list[str]:
    """Indented lines as a tree: what is indented below a line hangs on it; every line stays as wide as it was."""
    signs = _SIGNS if unicode else _PLAIN
    depths = [(len(line) - len(line.lstrip(" "))) // 2 for line in lines]
    drawn = []
    for number, line in enumerate(lines):
        depth = depths[number]
        prefix = ""
        for level in range(depth):
            follows = _follows(depths, number, level + 1)
            last = level == depth - 1
            prefix += signs[(0 if follows else 1) if last else (2 if follows else 3)]
        drawn.append(prefix + line[2 * depth :])
    return drawn


def _follows(depths: Sequence[int], number: int, depth: int) -> bool:
    """Whether a later line of this depth hangs on the same line."""
    for later in depths[number + 1 :]:
        if later < depth:
            return False
        if later == depth:
            return True
    return False
