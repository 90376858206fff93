"""A catalog on disk with two sketches, made without Spark: what a shell or command answers from it needs no JVM."""

from __future__ import annotations

from skimql.engine.catalog.catalog import Catalog

from .kept import kept, remember

QUERY = "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s FROM orders o JOIN lines l ON o.id = l.oid"


def two_sketches(folder):
    """Tables `orders` (id) and `lines` (oid, price), whose join has 3 rows and a sum of 18; the folder."""
    counters = {"buckets": 512, "sparse": False}
    lines = kept(
        "s_lines", "lines", {"oid": [1, 1, 2, 9]}, classes=["id"], summed=("price", [5, 6, 7, 8]), **counters
    )
    remember(Catalog(folder), kept("s_orders", "orders", {"id": range(5)}, **counters), lines)
    return folder
