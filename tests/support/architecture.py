"""The diagrams of docs/architecture.md, made from the imports: ``python tests/support/architecture.py`` writes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import networkx as nx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.imports import FOLDERS, ROOT, graph, room

PAGE = ROOT / "docs" / "architecture.md"
_BLOCK = re.compile(r"(<!-- diagram: (\w+) -->\n)```mermaid\n.*?```\n", re.DOTALL)


def page(text: str) -> str:
    """The page with its diagrams as the imports are now."""
    return _BLOCK.sub(lambda block: f"{block[1]}```mermaid\n{diagram(block[2])}```\n", text)


def diagram(name: str) -> str:
    """Mermaid text: the folders of the package, or the rooms of one folder.

    An arrow points at what is imported; those that follow from others are left out.
    """
    imports = graph()
    if name == "package":
        found = _of(imports, lambda module: module.split(".")[0], set(FOLDERS) | {"errors"})
    else:
        inside = {room(m) for m in imports if m.startswith(f"{name}.")}
        found = _of(imports, room, inside)
    lines = [f"  {_box(node)}" for node in sorted(found)]
    lines += [f"  {_id(a)} --> {_id(b)}" for a, b in sorted(nx.transitive_reduction(found).edges)]
    return "\n".join(["graph TD", *lines]) + "\n"


def _of(imports: nx.DiGraph, part: Callable[[str], str], wanted: set[str]) -> nx.DiGraph:
    parts = nx.DiGraph()
    parts.add_nodes_from(wanted)
    for name, target in imports.edges:
        own, other = part(name), part(target)
        if own != other and own in wanted and other in wanted and not _known_circle(name, target):
            parts.add_edge(own, other)
    return parts


def _known_circle(name: str, target: str) -> bool:
    return (name, target) == ("engine.queries.run", "engine.session")


def _id(node: str) -> str:
    return node.replace(".", "_")


def _box(node: str) -> str:
    return f"{_id(node)}[{node.rpartition('.')[2]}]"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
