"""The shape of a query as sketches see it: vertices, and edges between their attributes that make a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..hashing.xi import Family
from .linear import SketchSpec


class Edge(NamedTuple):
    """An equi-join between two of the sketches of a query; a plain tuple of four numbers will do as well.

    Parameters
    ----------
    left, right : int
        Which sketches, by their places in the list.
    left_attribute, right_attribute : int
        Which attribute of either, by its place among the keys of its updates. ``Edge(0, 1)``, or ``(0, 1, 0, 0)``,
        joins two sketches of one attribute.
    """

    left: int
    right: int
    left_attribute: int = 0
    right_attribute: int = 0


Edges = Sequence[tuple[int, int, int, int]]
MEANING = (
    "an edge is (left sketch, right sketch, attribute of the left, attribute of the right), as (0, 1, 0, 0)"
)


def check_join(specs: Sequence[SketchSpec], edges: Edges) -> list[bool]:
    """Check that sketches of these specs can answer the query.

    Parameters
    ----------
    specs : sequence of SketchSpec
        One for each vertex.
    edges : sequence of (u, v, i, j)
        Attribute i of vertex u equals attribute j of vertex v.

    Returns
    -------
    list of bool
        A 2-colouring: the ends of every edge have different colours, vertex 0 is True.

    Raises
    ------
    ValueError
        If the sizes differ, the edges are no tree in which every attribute is joined exactly once, the ends
        of an edge have different families, or two edges share one.
    """
    for spec in specs[1:]:
        if spec.shape != specs[0].shape:
            raise ValueError(f"sketches of different sizes cannot be multiplied: {specs[0]} and {spec}")
    colours = check_tree([len(spec.families) for spec in specs], edges)
    seen: set[Family] = set()
    for u, v, i, j in edges:
        left, right = specs[u].families[i], specs[v].families[j]
        if left != right:
            raise ValueError(f"an edge joins attributes of different families: {left} and {right}")
        if left in seen:
            raise ValueError(f"two edges of one query share {left}; give each edge its own family")
        seen.add(left)
    return colours


def check_tree(attributes: Sequence[int], edges: Edges) -> list[bool]:
    """Check that the edges make a tree, every attribute at the end of exactly one.

    Parameters
    ----------
    attributes : sequence of int
        Number of join attributes of each vertex.
    edges : sequence of (u, v, i, j)

    Returns
    -------
    list of bool
        A 2-colouring, vertex 0 is True.
    """
    if len(edges) != len(attributes) - 1:
        raise ValueError(f"a tree of {len(attributes)} vertices has one edge fewer, not {len(edges)}")
    ends: set[tuple[int, int]] = set()
    for edge in edges:
        if len(edge) != 4:
            raise ValueError(f"{tuple(edge)} is no edge; {MEANING}")
        u, v, i, j = edge
        for vertex, attribute in ((u, i), (v, j)):
            if not 0 <= vertex < len(attributes):
                raise ValueError(f"an edge names vertex {vertex} of {len(attributes)}; {MEANING}")
            if not 0 <= attribute < attributes[vertex]:
                raise ValueError(
                    f"an edge names attribute {attribute} of vertex {vertex}, which has {attributes[vertex]}; {MEANING}"
                )
            ends.add((vertex, attribute))
    total = sum(attributes)
    if len(ends) < 2 * len(edges) or len(ends) < total:
        raise ValueError(f"{len(ends)} of {total} attributes are joined; each needs exactly one edge")
    return _two_colours(len(attributes), edges)


def children_first(edges: Edges, root: int = 0) -> list[tuple[int, int, int, int]]:
    """The edges as (child, parent, attribute of child, attribute of parent), leaves before their parents."""
    order: list[tuple[int, int, int, int]] = []
    waiting, seen = [root], {root}
    while waiting:
        parent = waiting.pop()
        for u, v, i, j in edges:
            for child, other, mine, theirs in ((u, v, i, j), (v, u, j, i)):
                if other == parent and child not in seen:
                    seen.add(child)
                    waiting.append(child)
                    order.append((child, parent, mine, theirs))
    return order[::-1]


def _two_colours(vertices: int, edges: Edges) -> list[bool]:
    colour: list[bool | None] = [None] * vertices
    colour[0] = True
    for child, parent, _, _ in reversed(children_first(edges)):
        colour[child] = not colour[parent]
    if None in colour:
        raise ValueError(f"vertex {colour.index(None)} is not connected to vertex 0: not a tree")
    return [bool(c) for c in colour]
