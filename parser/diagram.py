"""Diagrams of join graphs and plans: boxes of text and lines between them, as Mermaid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its name in the diagram, and its lines of text."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """An edge between two boxes by name; an arrow where it leads from one to the other."""

    start: str
    end: str
    labels: tuple[str, ...] = ()
    arrow: bool = False


@dataclass(slots=True)
class Diagram:
    """Boxes and lines in the order in which they are told."""

    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def box(self, name: str, *lines: str) -> None:
        """Add a box."""
        self.boxes.append(Box(name, _plain(lines)))

    def line(self, start: str, end: str, *labels: str, arrow: bool = False) -> None:
        """Add a line between two boxes."""
        self.lines.append(Line(start, end, _plain(labels), arrow))

    def mermaid(self) -> str:
        """A Mermaid flow chart."""
        told = ["graph LR"]
        told += [f'  {box.name}["{_labelled(box.lines)}"]' for box in self.boxes]
        for line in self.lines:
            sign = "-->" if line.arrow else "---"
            label = f'|"{_labelled(line.labels)}"|' if line.labels else ""
            told.append(f"  {line.start} {sign}{label} {line.end}")
        return "\n".join(told)


def _plain(lines: Sequence[str]) -> tuple[str, ...]:
    """Names without their backticks, blanks as one."""
    return tuple(" ".join(line.replace("`", "").split()) for line in lines)


def _labelled(lines: Sequence[str]) -> str:
    """Text inside a Mermaid label: quotes and angle brackets as entities, a break between lines."""
    codes = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;"}
    return "<br/>".join("".join(codes.get(c, c) for c in line) for line in lines)
