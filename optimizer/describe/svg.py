"""Diagrams as SVG: boxes in columns, curves between them; nothing else is needed to show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import networkx as nx

from ...parser.diagram import Diagram, Line

# Pixels: of a character of the monospaced font, of a line of text, and around boxes.
CHARACTER, LINE, PADDING, ACROSS, DOWN = 7.3, 17, 9, 46, 22
_HALF = 0.5


def as_svg(diagram: Diagram) -> str:
    """A drawing for browsers and documents."""
    places, width, height = _places(diagram)
    told = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
        '  <defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
        ' orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#555555"/></marker></defs>',
        f'  <rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for line in diagram.lines:
        told += _curve(line, places[line.start], places[line.end])
    for box in diagram.boxes:
        at = places[box.name]
        told.append(
            f'  <rect x="{at.x:.1f}" y="{at.y:.1f}" width="{at.width:.1f}" height="{at.height:.1f}" rx="5"'
            ' fill="#eef3fa" stroke="#5577aa"/>'
        )
        told += _texts(box.lines, at.x + PADDING, at.y + PADDING, "start")
    return "\n".join([*told, "</svg>"])


@dataclass(frozen=True, slots=True)
class _Placed:
    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        return self.x + self.width * _HALF

    @property
    def middle(self) -> float:
        return self.y + self.height * _HALF


def _places(diagram: Diagram) -> tuple[dict[str, _Placed], float, float]:
    """Where every box is, and the size of the whole; parts that no line joins are below each other."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(box.name for box in diagram.boxes)
    graph.add_edges_from((line.start, line.end) for line in diagram.lines)
    arrows = {name for line in diagram.lines if line.arrow for name in (line.start, line.end)}
    boxes = {
        box.name: (_width(box.lines) + 2 * PADDING, len(box.lines) * LINE + 2 * PADDING)
        for box in diagram.boxes
    }
    places: dict[str, _Placed] = {}
    top = width = float(PADDING)
    for part in nx.weakly_connected_components(graph):
        names = [name for name in boxes if name in part]
        layers = _layers(graph.subgraph(names), names, arrows)
        left, bottom = float(PADDING), top
        tall = max(sum(boxes[n][1] + DOWN for n in layer) for layer in layers)
        for layer in layers:
            y = top + (tall - sum(boxes[n][1] + DOWN for n in layer)) * _HALF
            wide = max(boxes[n][0] for n in layer)
            for name in layer:
                places[name] = _Placed(left + (wide - boxes[name][0]) * _HALF, y, *boxes[name])
                y += boxes[name][1] + DOWN
            bottom, width = max(bottom, y), max(width, left + wide + PADDING)
            labels = [_width(line.labels) for line in diagram.lines if {line.start, line.end} & set(layer)]
            left += wide + ACROSS + max(labels, default=0)
        top = bottom
    return places, width, top


def _layers(graph: nx.DiGraph[str], names: Sequence[str], arrows: set[str]) -> list[list[str]]:
    """Columns from left to right: what an arrow leads to is right of it, other neighbours are beside each other."""
    if arrows & set(names) and nx.is_directed_acyclic_graph(graph):
        columns = [list(c) for c in nx.topological_generations(graph.reverse())][::-1]
    else:
        columns = [list(c) for c in nx.bfs_layers(graph.to_undirected(), names[:1])]
    first = {name: number for number, name in enumerate(names)}
    return [sorted(column, key=first.__getitem__) for column in columns]


def _curve(line: Line, start: _Placed, end: _Placed) -> Iterator[str]:
    if start.x > end.x and not line.arrow:
        start, end = end, start
    sideways = end.x >= start.x + start.width
    # Boxes of one column are joined from below to above.
    x1, y1 = (start.x + start.width, start.middle) if sideways else (start.centre, start.y + start.height)
    x2, y2 = (end.x, end.middle) if sideways else (end.centre, end.y)
    bend = (x2 - x1) * _HALF if sideways else 0.0
    marker = ' marker-end="url(#arrow)"' if line.arrow else ""
    yield (
        f'  <path d="M{x1:.1f} {y1:.1f} C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"'
        f' fill="none" stroke="#555555"{marker}/>'
    )
    if line.labels:
        width = _width(line.labels)
        x, y = (x1 + x2) * _HALF, (y1 + y2) * _HALF - len(line.labels) * LINE * _HALF
        yield (
            f'  <rect x="{x - width * _HALF:.1f}" y="{y:.1f}" width="{width:.1f}"'
            f' height="{len(line.labels) * LINE}" fill="#ffffff"/>'
        )
        yield from _texts(line.labels, x, y, "middle")


def _width(lines: Sequence[str]) -> float:
    return max(map(len, lines), default=0) * CHARACTER


def _texts(lines: Sequence[str], x: float, y: float, anchor: str) -> Iterator[str]:
    for number, text in enumerate(lines, 1):
        told = escape("".join(c for c in text if c.isprintable()), quote=False)
        yield (
            f'  <text x="{x:.1f}" y="{y + number * LINE - 5:.1f}" text-anchor="{anchor}" fill="#222222"'
            f' xml:space="preserve">{told}</text>'
        )
