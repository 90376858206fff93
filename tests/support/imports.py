"""The package's own imports as a graph of modules, read from the source: those in functions and for types included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("grammar", "parser", "optimizer", "sketches", "engine", "cli")


def modules() -> dict[str, Path]:
    """Every module of the package by its name within it; the root is ``""``."""
    found = {"": ROOT / "__init__.py", "errors": ROOT / "errors.py"}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a source file, read once a run; nobody changes it."""
    return ast.parse(path.read_text())


def graph() -> nx.DiGraph:
    """An edge for each module that imports another; its attribute `names` has what it takes."""
    return _graph().copy()


@cache
def _graph() -> nx.DiGraph:
    known = modules()
    result = nx.DiGraph()
    result.add_nodes_from(known)
    for name, path in known.items():
        for target, taken in _imports(name, path, known):
            if target != name:
                result.add_edge(name, target)
                result.edges[name, target].setdefault("names", set()).add(taken)
    return result


def _imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[tuple[str, str]]:
    package = [p for p in name.split(".") if p]
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                inner = ".".join([*base, alias.name])
                yield (inner if inner in known else ".".join(base)), alias.name


def room(module: str) -> str:
    """The sub-package that a module is in, or the module itself where it is in none."""
    parts = module.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 else module
