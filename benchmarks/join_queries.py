"""Files of join queries with their true counts, and the relations that they join.

The form is that of STATS-CEB's sub-plan queries: a JSON list of objects with ``id``, ``sql``
(``SELECT COUNT(*) FROM t AS a, ... WHERE ...``), ``true`` and, optionally, ``published``: the estimates of other
methods by name. Parsing, join graphs and classes are the project's own; DuckDB evaluates the filters and groups
the tuples, once for each query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import sqlglot

from skimql.engine.memory_backend.tables import MemoryTables
from skimql.optimizer.messages import JoinTree, tree_of
from skimql.parser.join_graph import Query
from skimql.parser.resolve import resolve
from skimql.parser.statement import parse_statement

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """A virtual relation: its distinct key combinations and how many tuples have each.

    `keys` has shape (classes of the vertex, n), in the order of `JoinTree.classes_of`, ascending; `weights` shape (n,);
    `scanned` is the number of rows before the filter.
    """

    keys: Ints
    weights: Ints
    scanned: int

    def grouped(self, position: int) -> tuple[Ints, Ints]:
        """Distinct keys of one attribute, ascending, and the tuples of each."""
        if len(self.keys) == 1:
            return self.keys[0], self.weights
        keys, inverse = np.unique(self.keys[position], return_inverse=True)
        return keys, np.bincount(inverse, self.weights, keys.size).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class JoinQuery:
    """A query of the file with its relations and the tables they are of; `published` are others' estimates."""

    id: Any
    query: Query
    tree: JoinTree
    relations: tuple[Tuples, ...]
    truth: float
    published: Mapping[str, float]
    tables: MemoryTables

    @property
    def one_class(self) -> bool:
        """Whether all its tables share one key."""
        return len(self.tree.classes) == 1


def read_queries(file: Path, folder: Path) -> list[JoinQuery]:
    """All queries of a file over the Parquet tables of a folder.

    Raises
    ------
    ValueError
        If a query's ``true`` is not what its relations join to, so that the file and the data do not belong
        together.
    """
    tables = parquet_tables(folder)
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    cache: dict[tuple[str, str | None, tuple[str, ...]], Tuples] = {}
    found = []
    for entry in json.loads(file.read_text()):
        query = resolve(parse_statement("SELECT APPROXIMATE" + entry["sql"].strip()[len("SELECT") :]), tables)
        query = tables.typed(query)
        tree = tree_of(query.graph)
        relations = []
        for number, vertex in enumerate(query.graph.vertices):
            keys = tuple(_key(query, tree, number, joined) for joined in tree.classes_of(number))
            wanted = vertex.table, vertex.filter, keys
            if wanted not in cache:
                cache[wanted] = _tuples(database, folder / f"{vertex.table}.parquet", vertex.filter, keys)
            relations.append(cache[wanted])
        counted = exact_count(tree, relations)
        truth = float(entry.get("true", counted))
        if truth != counted:
            raise ValueError(
                f"query {entry['id']} counts {counted:,.0f} on this data, the file says {truth:,.0f}"
            )
        published = {name: float(value) for name, value in entry.get("published", {}).items()}
        found.append(JoinQuery(entry["id"], query, tree, tuple(relations), truth, published, tables))
    return found


def parquet_tables(folder: Path) -> MemoryTables:
    """The tables of a folder of Parquet files."""
    return MemoryTables({path.stem: pq.read_table(path) for path in sorted(folder.glob("*.parquet"))})


def exact_count(tree: JoinTree, relations: list[Tuples] | tuple[Tuples, ...]) -> float:
    """The size of the join, by passing messages from the last vertex of each class to the first."""
    return float(_passed(tree, relations, 0, None)[1].sum())


def _passed(
    tree: JoinTree, relations: list[Tuples] | tuple[Tuples, ...], vertex: int, towards: int | None
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """Keys of the class `towards` and total weights of the subtree behind a vertex."""
    own = relations[vertex]
    weights = own.weights.astype(np.float64)
    for joined in tree.classes_of(vertex):
        if joined == towards:
            continue
        keys = own.keys[tree.position(vertex, joined)]
        for other in tree.classes[joined].vertices:
            if other != vertex:
                weights = weights * weights_at(*_passed(tree, relations, other, joined), keys)
    if towards is None:
        return np.zeros(weights.size, np.int64), weights
    keys, inverse = np.unique(own.keys[tree.position(vertex, towards)], return_inverse=True)
    return keys, np.bincount(inverse, weights, keys.size)


def weights_at(keys: Ints, weights: npt.NDArray[np.float64], wanted: Ints) -> npt.NDArray[np.float64]:
    """Weights of the wanted keys in a map of ascending keys, 0 where absent."""
    if not keys.size:
        return np.zeros(wanted.size)
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, weights[at], 0.0)


def _key(query: Query, tree: JoinTree, vertex: int, joined: int) -> str:
    """The key expression of a vertex in a class, as DuckDB reads it: an integer, or a 63-bit fingerprint."""
    graph = query.graph
    edge = next(
        graph.edges[e]
        for e in tree.classes[joined].edges
        if vertex in (graph.edges[e].left, graph.edges[e].right)
    )
    texts = [sqlglot.transpile(k, read="spark", write="duckdb")[0] for k in edge.keys_of(vertex)]
    if len(texts) == 1 and edge.key_types[0] in ("tinyint", "smallint", "int", "bigint"):
        return texts[0]
    return f"(hash({', '.join(texts)}) >> 1)::BIGINT"


def _tuples(
    database: duckdb.DuckDBPyConnection, path: Path, condition: str | None, keys: tuple[str, ...]
) -> Tuples:
    where = [f"({k}) IS NOT NULL" for k in keys]
    if condition:
        where.append(sqlglot.transpile(condition, read="spark", write="duckdb")[0])
    source = f"read_parquet('{path}')"
    columns = ", ".join(f"{k} AS k{i}" for i, k in enumerate(keys))
    names = ", ".join(f"k{i}" for i in range(len(keys)))
    rows = database.execute(
        f"SELECT {names}, count(*) AS n FROM (SELECT {columns} FROM {source} WHERE {' AND '.join(where)}) "
        f"GROUP BY {names} ORDER BY {names}"
    ).fetchnumpy()
    columns_of = [np.asarray(rows[f"k{i}"], np.int64) for i in range(len(keys))]
    scanned = pq.read_metadata(path).num_rows
    return Tuples(np.array(columns_of).reshape(len(keys), -1), np.asarray(rows["n"], np.int64), scanned)
