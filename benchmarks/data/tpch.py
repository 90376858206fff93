"""The workloads of the sharing papers: 29 queries over six relations with the join schema of TPC-H.

Edge sets from US 2006/0161566, FIG. 6; the figure of the schema is damaged, and the joins were reconstructed
by search (the only labelling that gives the published numbers of vertices). Edge 10 is undetermined there;
here it is a self-join of lineitem.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skimql.optimizer.workload.share import Attribute, GraphBuilder, SharedGraph, VirtualRelation

from .regions import Regions, Relation, perturbed, populate, random_sides, zipf_shares

LARGEST_DOMAIN = 1024
RELATIONS = {
    "part": ("partkey",),
    "partsupp": ("partkey", "suppkey"),
    "supplier": ("suppkey", "nationkey"),
    "customer": ("nationkey", "custkey"),
    "orders": ("custkey", "orderkey"),
    "lineitem": ("orderkey", "partkey", "suppkey"),
}
ATTRIBUTES = ("partkey", "suppkey", "nationkey", "custkey", "orderkey")
JOINS = {
    1: ("part", "partsupp", "partkey"),
    2: ("partsupp", "supplier", "suppkey"),
    3: ("supplier", "customer", "nationkey"),
    4: ("customer", "orders", "custkey"),
    5: ("orders", "lineitem", "orderkey"),
    6: ("lineitem", "partsupp", "suppkey"),
    7: ("lineitem", "partsupp", "partkey"),
    8: ("lineitem", "supplier", "suppkey"),
    9: ("lineitem", "part", "partkey"),
}
QUERIES = {
    1: (1, 2),
    2: (4, 5),
    3: (3, 4, 5),
    4: (4, 5, 8),
    5: (4, 5, 8, 9),
    6: (2,),
    7: (5,),
    8: (9,),
    9: (1,),
    10: (6, 7),
    11: (5, 8),
    12: (10,),
    13: (4,),
    14: (3,),
    15: (3, 4),
    16: (5, 8),
    17: (8, 9),
    18: (5, 9),
    19: (6, 8),
    20: (7, 8),
    21: (8,),
    22: (6,),
    23: (7,),
    24: (2, 3),
    25: (2, 7),
    26: (1, 6),
    27: (3, 8),
    28: (1, 2, 3),
    29: (2, 3, 4),
}
WORKLOADS = {1: tuple(range(1, 13)), 2: tuple(range(1, 30)), 3: (6, 7, 8, 9, 10, 11, 12, 28)}


def workload_graph(workload: int) -> SharedGraph:
    """The unshared join graphs of workload 1, 2 or 3; labels are the numbers of the queries."""
    builder = GraphBuilder()
    for number in WORKLOADS[workload]:
        builder.add(number, *_query(QUERIES[number]))
    return builder.build()


def _query(
    edges: Sequence[int],
) -> tuple[list[VirtualRelation], list[tuple[int, Attribute, int, Attribute]]]:
    if tuple(edges) == (10,):
        key = Attribute(("orderkey",))
        return [VirtualRelation("lineitem")] * 2, [(0, key, 1, key)]
    joins = [JOINS[edge] for edge in edges]
    names = list(dict.fromkeys(name for one, other, _ in joins for name in (one, other)))
    return [VirtualRelation(name) for name in names], [
        (names.index(one), Attribute((key,)), names.index(other), Attribute((key,)))
        for one, other, key in joins
    ]


def generate(data_seed: int, domain: int = LARGEST_DOMAIN, tuples: int = 10_000_000) -> dict[str, Relation]:
    """The six relations: ten regions each, correlated over the relations that share an attribute.

    Every region has one center in the space of all five attributes; a relation's rectangle lies around the
    center's projection, moved with perturbation 1. Region volumes of 1000 to 2000, z_inter 1.0, z_intra 0.0
    to 0.5, as in the papers.
    """
    rng = np.random.default_rng(data_seed)
    centers = rng.integers(0, domain, (10, len(ATTRIBUTES)))
    relations = {}
    for name, attributes in RELATIONS.items():
        columns = [ATTRIBUTES.index(attribute) for attribute in attributes]
        sides = random_sides(rng, len(columns), len(centers), domain, (1000, 2000))
        regions = Regions(domain, centers[:, columns], sides, zipf_shares(len(centers), 1.0))
        relations[name] = populate(rng, perturbed(rng, regions), tuples)
    return relations
