"""Sketch files and manifests of hostile content under checksums that are right, read in the public way.

Each try is imported, listed, described and asked, or is the manifest of a catalog that is listed, described, asked and
changed. Only an error of SkimQL's may come out of it, in seconds, and without much memory. No Spark runs.
"""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.file import StoredSketch, canonical, decode, digest, encode
from skimql.engine.catalog.form import Groups, Head, Measure
from skimql.engine.catalog.kinds.registry import KINDS
from skimql.engine.catalog.manifest import KnownTable, StoredWorkload
from skimql.engine.catalog.metadata import to_json
from skimql.engine.materialized.definition import stored
from skimql.engine.spark.own import OwnSpark
from skimql.engine.synopses import Built, Tally
from skimql.errors import EnvironmentFault, SkimqlError
from skimql.optimizer.plan import Attribute, Weight
from skimql.parser.join_graph import Column, TableSchema
from skimql.sketches.hashing.xi import derive_seed, make_family
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.sparse import SparseFirstSketch

from .crafted import arrays_table, mutated, sketch_file, text_of
from .record import Tally as Record

TRIES = 20_000
SUMMED = (Weight("`v`"),)
QUESTIONS = (
    "SELECT APPROXIMATE COUNT(*) AS n FROM t a JOIN t b ON a.k = b.k",
    "SELECT APPROXIMATE SUM(a.v) AS s, COUNT(*) FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k",
)
COUNT, SHOWN = (
    "SELECT APPROXIMATE COUNT(*) AS n FROM t a JOIN u b ON a.k = b.k",
    ("SHOW SKETCHES", "EXPLAIN SKETCHES w"),
)


class NoSpark(OwnSpark):
    """That of a session for which no Spark is to be had."""

    def running(self) -> None:
        return None

    def needed(self) -> Any:
        """Raises EnvironmentFault."""
        raise EnvironmentFault("no Spark here", "SKIMQL_NO_JAVA")


class WithoutSpark(Session):
    """A session for which no Spark is to be had."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._own = NoSpark(None, {})


def run(tries: int, seed: int, folder: Path) -> Record:
    """Read `tries` crafted files, two in three of them sketches to import."""
    record = Record("files")
    draw = random.Random(seed)
    sketches = samples()
    home = folder / "catalog"
    whole = json.loads((begun(home, sketches) / "catalog.json").read_bytes())["catalog"]
    for number in range(tries):
        if draw.random() < 2 / 3:
            data, what = crafted_sketch(draw, draw.choice(sketches)), f"file {number} of seed {seed}"
            with record.trying(what):
                import_and_ask(folder, data)
        else:
            data, what = signed(_hostile_manifest(whole, draw)), f"manifest {number} of seed {seed}"
            for name in ("catalog.json", *(p.name for p in home.glob("catalog-*.json"))):
                (home / name).write_bytes(data)
            with record.trying(what):
                open_and_ask(home)
            if draw.random() < 0.02 or len(list(home.glob("*.parquet"))) != len(sketches):
                shutil.rmtree(home)
                begun(home, sketches)
    return record


def _hostile_manifest(whole: Any, draw: random.Random) -> Any:
    """A manifest that is wrong anywhere, or in how it says that a workload answers."""
    if draw.random() < 0.6:
        return mutated(whole, draw)
    copied = json.loads(json.dumps(whole))
    query = copied["workloads"]["w"]["plans"]["queries"][0]
    part = draw.choice(("edges", "aggregates"))
    query[part] = mutated(query[part], draw)
    return copied


def import_and_ask(folder: Path, data: bytes) -> None:
    """Import a file, and use what has come of it."""
    path = folder / "crafted.parquet"
    path.write_bytes(data)
    session = WithoutSpark()
    session.sql(f"IMPORT SKETCH s FROM '{path}'")
    used(
        session,
        ["SHOW SKETCHES", "DESCRIBE SKETCH EXTENDED s", *QUESTIONS, "REFRESH SKETCH s", "DROP SKETCH s"],
    )


def open_and_ask(home: Path) -> None:
    """Open a catalog, and use and change what it says it has."""
    session = WithoutSpark(catalog=home)
    names = [e.name for e in session.catalog.manifest.sketches.values()]
    described = [f"DESCRIBE SKETCH EXTENDED `{n.replace('`', '``')}`" for n in names if n]
    used(session, [*SHOWN, *described, *QUESTIONS, COUNT, "REFRESH SKETCH map", "DROP SKETCH nosuch"])


def used(session: Session, statements: list[str]) -> None:
    """Run statements; the first error is raised when all have run."""
    raised = None
    for statement in statements:
        try:
            session.sql(statement)
        except SkimqlError as fault:
            str(fault)
            raised = raised or fault
    if raised is not None:
        raise raised


def signed(content: Any) -> bytes:
    """A manifest of this content, its checksum right where it can have one."""
    try:
        checksum = digest(canonical(content))
    except (ValueError, RecursionError):
        checksum = digest(text_of(content))
    return text_of({"catalog": content, "sha256": checksum})


def crafted_sketch(draw: random.Random, sketch: StoredSketch) -> bytes:
    """The file of a sketch with something in it that should not be."""
    head = to_json(sketch.head)
    arrays: dict[str, np.ndarray] = {}
    kind = sketch.head.kind
    for number, built in enumerate(sketch.built[:: len(sketch.head.measures) // sketch.head.synopses]):
        own = kind.arrays(built.sketch)
        arrays |= {f"{number}.{n}": np.ascontiguousarray(a) for n, a in own.items()}
    where = draw.choice(("head", "head", "head", "list", "values", "both"))
    if where in ("head", "both"):
        head = mutated(head, draw)
    if where in ("values", "both") and arrays and draw.random() < 0.5:
        name = draw.choice(list(arrays))
        arrays[name] = _hostile_array(arrays[name], draw)
    listed: Any = {
        n: {"dtype": str(a.dtype), "shape": list(a.shape), "sha256": digest(a.tobytes())}
        for n, a in arrays.items()
    }
    if where == "list":
        listed = mutated(listed, draw)
    table = arrays_table(arrays, draw, hostile=where in ("values", "both"))
    data = sketch_file(text_of(head), text_of(listed), table, draw)
    if draw.random() < 0.1:
        damaged = bytearray(data)
        damaged[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        return bytes(damaged)
    return data


def _hostile_array(array: np.ndarray, draw: random.Random) -> np.ndarray:
    match draw.randrange(5):
        case 0:
            return np.zeros(draw.choice((0, 1, 10**6)), array.dtype)
        case 1:
            return array[::-1].copy()
        case 2 if array.dtype == np.float64:
            return np.where(np.arange(array.size).reshape(array.shape) % 2, np.nan, np.inf)
        case 3:
            return array.astype(np.float64 if array.dtype == np.int64 else np.int64)
    return np.full(array.shape, draw.choice((-(1 << 63), (1 << 63) - 1, 0)), np.int64)


def samples() -> list[StoredSketch]:
    """Sketches of every kind and form: maps and counters, integers and doubles, attributes, groups."""
    keys = np.arange(40) % 7
    return [
        sketch("map", "t", [keys], None),
        sketch("counters", "t", [keys], None, sparse=False),
        sketch("summed", "t", [keys], np.arange(40) - 20.5, sparse=False),
        sketch("doubles", "t", [keys], np.arange(40) - 20.5),
        sketch("pairs", "u", [keys, keys + 1], None),
        sketch("total", "u", [], np.arange(40) + 1),
        sketch("folded", "u", [keys], None, family="folded", sparse=False),
        sketch("w.0", "t", [keys], None, group="w"),
        sketch("w.1", "u", [keys], None, group="w"),
        *(of_kind(method, groups) for method in KINDS for groups in (0, 2)),
    ]


def of_kind(method: str, groups: int) -> StoredSketch:
    """A small stored sketch of a kind, its tuples in groups if there are any."""
    kind, name = KINDS[method], f"{method} {groups}"
    columns = [np.arange(40) % 7, np.arange(40) % 5][: max(kind.attributes[0], method == "convolution")]
    # The number of the sampled attribute is of the one that there is.
    given = {n: 0 if n == "sampled" else 3 for n in kind.defaults()}
    parameters = tuple(sorted(given.items()))
    blank = sketch(name, "t", columns, None, sparse=False).head
    measures = (blank.measures[0], *(replace(blank.measures[0], weight=w) for w in SUMMED if kind.weighted))
    head = replace(blank, method=method, measures=measures, rows=4, buckets=16, parameters=parameters)
    built = []
    for number in range(max(groups, 1)):
        mine = np.arange(40) % max(groups, 1) == number
        made = [kind.empty(head.size(m), np.arange(3)) for m in measures[: head.synopses]]
        own = [np.ones(int(mine.sum()), np.int64), *([np.arange(40)[mine]] if kind.weighted else [])]
        kind.update(made, [c[mine] % 8 for c in columns], own)
        tallies = [Tally(len(w), float(w.sum()), 0) for w in own]
        built += [Built(made[0 if kind.joint else n], t, 1.0) for n, t in enumerate(tallies)]
    if groups:
        values = tuple((f"g{n}", str(n)) for n in range(groups))
        head = replace(head, groups=Groups(("`k`", "`l`"), ("string", "bigint"), values, ()))
    return decode(encode(stored(head, built)), name)


def sketch(
    name: str,
    table: str,
    columns: list[np.ndarray],
    summed: np.ndarray | None,
    *,
    sparse: bool = True,
    family: str = "tabulation",
    group: str = "",
) -> StoredSketch:
    """A small stored sketch, made without Spark."""
    classes = ["k", "l"][: len(columns)]
    families = tuple(make_family(family, derive_seed(1, c)) for c in classes)
    weights = [Weight()] if summed is None else [Weight(), Weight("`v`"), Weight("`v`", presence=True)]
    built = []
    for weight in weights:
        valued = summed is not None and weight.expression is not None and not weight.presence
        values = summed if valued and summed is not None else np.ones(40, dtype=np.int64)
        made = SparseFirstSketch(ConvolutionSpec(families, 3, 64, str(values.dtype)), None if sparse else 0)
        made.update(columns, values)
        built.append(Built(made, Tally(40, float(np.abs(values).sum()), int((values < 0).sum())), 1.0))
    head = Head(
        name=name,
        table=table,
        filter="`v` > 1" if name == "pairs" else None,
        attributes=tuple(Attribute((f"`{c}`",), ("bigint",), c) for c in classes),
        key_types=tuple(("bigint",) for _ in classes),
        families=families,
        method={0: "total", 1: "hash"}.get(len(columns), "convolution"),
        seed=1,
        rows=3,
        buckets=64,
        limit_bytes=int(sparse),
        measures=tuple(Measure(w, "int64", 1.0, Tally(), True, 0) for w in weights),
        columns=(Column("k", "bigint"), Column("l", "bigint"), Column("v", "double")),
        ansi=True,
        time_zone="UTC",
        zoned=False,
        lineage=(),
        created="2026-11-28T00:00:00Z",
        updated="2026-11-28T00:00:00Z",
        group=group,
    )
    made_sketch = stored(head, built)
    return decode(encode(made_sketch), name)


def begun(home: Path, sketches: list[StoredSketch]) -> Path:
    """A catalog of the sketches, their tables and a workload."""
    catalog = Catalog(home)
    tables = {n: KnownTable(TableSchema(n, sketches[0].head.columns), None, {}) for n in ("t", "u")}
    catalog.remember(tables, True, "UTC")
    members = [s for s in sketches if s.head.group]
    terms = [[1.0, [0, 1]]]
    question = {
        "question": _question(catalog),
        "edges": [[0, 1, 0, 0, "k"]],
        "aggregates": [["count", "n", terms, terms]],
    }
    plans = {"stages": "as planned", "gathered_at": 1.0, "queries": [question]}
    catalog.put(*(s for s in sketches if not s.head.group))
    catalog.put(*members, workload=StoredWorkload("w", tuple(m.head.name for m in members), plans))
    return home


def _question(catalog: Catalog) -> str:
    from skimql.engine.materialized.declared import _question as question_of
    from skimql.parser.resolve import resolve
    from skimql.parser.statement import parse_statement

    session = WithoutSpark(catalog=catalog)
    return question_of(session.typed(resolve(parse_statement(COUNT), session.tables, ansi=True)))
