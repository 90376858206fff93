"""Sets of views on streams: planned together, answered from one pass, all or none."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from support.continuous import MemorySpark, asked, declared, declared_set, stream_of
from support.golden import golden
from support.memory import arrow
from support.workloads import TPCH_JOINS

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.describe import explain
from skimql.engine.streams.store import continuous, load
from skimql.engine.streams.view_sets import _bytes
from skimql.engine.streams.views import planned, readers
from skimql.errors import SkimqlError

SCHEMA = "k BIGINT, g BIGINT, v BIGINT, op STRING"
DELETES = "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"
SET = """CREATE CONTINUOUS VIEWS w (
    n AS (SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k),
    s AS (SELECT APPROXIMATE SUM(a.v) AS s, AVG(a.v) AS m FROM a JOIN b ON a.k = b.k WHERE b.v > 10),
    f AS (SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k WHERE b.v > 10),
    t AS (SELECT SUM(v) AS s FROM a)
) SIZE 64 KB MINIMIZE AVERAGE ERROR"""


def two_streams():
    return [stream_of("a", SCHEMA, DELETES), stream_of("b", SCHEMA, DELETES)]


def events(seed, rows=300, keys=40):
    random = np.random.default_rng(seed)
    op = np.where(random.random(rows) < 0.2, "d", "i").tolist()
    columns = [random.integers(0, n, rows).tolist() for n in (keys, 6, 50)]
    return list(zip(*columns, op, strict=True))


def run(catalog, tmp_path, **batches):
    for name, rows in batches.items():
        MemorySpark(catalog, name, tmp_path / f"checkpoint of {name}").run([arrow(SCHEMA, r) for r in rows])


def truth(left, right, value=lambda v: 1, condition=lambda v: True):
    signed = [(k, v, -1 if op == "d" else 1) for k, _, v, op in left]
    others = [(k, -1 if op == "d" else 1) for k, _, v, op in right if condition(v)]
    return sum(value(v) * s * t for k, v, s in signed for q, t in others if k == q)


def papers_workload(number):
    """A query of the papers' workload as the member of a set; two equalities of the same tables are one edge."""
    joins = golden("tpch_workload")["queries"][str(number)]
    if joins == [10]:
        return (
            f"q{number} AS (SELECT COUNT(*) AS n FROM lineitem a JOIN lineitem b ON a.orderkey = b.orderkey)"
        )
    chosen = [TPCH_JOINS[j - 1] for j in joins]
    tables = ", ".join(dict.fromkeys(t for left, _, right, _ in chosen for t in (left, right)))
    conditions = " AND ".join(f"{left}.{one} = {right}.{other}" for left, one, right, other in chosen)
    return f"q{number} AS (SELECT COUNT(*) AS n FROM {tables} WHERE {conditions})"


def test_the_papers_workload_declared_as_views_has_16_vertices_in_the_place_of_34(tmp_path):
    keys = {name: [] for join in TPCH_JOINS for name in (join[0], join[2])}
    for left, one, right, other in TPCH_JOINS:
        keys[left].append(one)
        keys[right].append(other)
    streams = [stream_of(n, ", ".join(f"{k} BIGINT" for k in dict.fromkeys(own))) for n, own in keys.items()]
    members = ", ".join(map(papers_workload, golden("tpch_workload")["workload1"]))
    catalog = Catalog(tmp_path / "catalog")
    made = declared_set(
        catalog, streams, f"CREATE CONTINUOUS VIEWS w ({members}) SIZE 160 KB MINIMIZE AVERAGE ERROR"
    )
    found = continuous(Catalog(catalog.folder))
    synopses = {s for v in found.members("w") for s in planned(v, found.streams).plan.synopses}
    assert len(synopses) == 16
    assert sum(8 * s.rows * s.buckets for s in synopses) <= 160 << 10
    before, after = re.findall(r"(?:before|after ) (\d+) sketches", made.stored.stages)[:2]
    assert (before, after) == ("34", "16")
    (cell,) = explain(catalog, "W").rows[0]
    assert cell.startswith(made.stored.stages)
    assert (
        cell.endswith("10 views read 16 sketches and totals; apart they would keep 34")
        or "16 sketches" in cell
    )


@pytest.mark.parametrize("sparse", [True, False])
def test_a_set_answers_as_its_queries_do_and_keeps_each_sketch_once(tmp_path, sparse):
    catalog = Catalog(tmp_path / "catalog")
    declared_set(catalog, two_streams(), SET, sparse=sparse)
    left, right = [events(1), events(2)], [events(3)]
    run(catalog, tmp_path, a=left, b=right)
    found = continuous(Catalog(catalog.folder))
    # n and f of a are one sketch; AVG has the sum and the count of a's values; the total of t; the count of events.
    state = load(catalog, found.streams["a"], 0).state
    assert len({s for v in readers(found, "a") for s in v.synopses_of("a")}) + 1 == len(state.summaries)
    assert state.nbytes + load(catalog, found.streams["b"], 0).state.nbytes <= (64 << 10) + 200
    mine, theirs = left[0] + left[1], right[0]
    large = [
        truth(mine, theirs, condition=lambda v: v > 10),
        truth(mine, theirs, lambda v: v, lambda v: v > 10),
    ]
    got = {n: asked(catalog, n).records()[0] for n in ("n", "s", "f", "t")}
    assert got["t"]["s"] == sum(-v if op == "d" else v for _, _, v, op in mine)
    for row, name, value in (
        (got["n"], "n", truth(mine, theirs)),
        (got["f"], "n", large[0]),
        (got["s"], "s", large[1]),
    ):
        assert row[f"{name}_low"] <= value <= row[f"{name}_high"]
        if sparse:
            assert (row[name], row["certified"]) == (value, True)
    # COUNT reads the very sketches whatever asks.
    assert planned(found.views["n"], found.streams).synopses_of("a") == planned(
        found.views["f"], found.streams
    ).synopses_of("a")


def test_a_view_that_comes_to_a_set_has_its_sketches_from_their_beginning(tmp_path):
    catalog = Catalog(tmp_path / "catalog")
    declared_set(catalog, two_streams(), SET)
    batches = {"a": [events(1)], "b": [events(2)]}
    run(catalog, tmp_path, **batches)
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM b JOIN a ON b.k = a.k"
    declared(catalog, continuous(catalog).streams.values(), {"more": text})
    found = continuous(Catalog(catalog.folder))
    shown = planned(found.views["more"], found.streams)
    assert set(shown.plan.synopses) == set(planned(found.views["n"], found.streams).plan.synopses)
    assert asked(catalog, "more").value == truth(batches["a"][0], batches["b"][0])


@pytest.mark.parametrize(
    ("sql", "code", "marked"),
    [
        (SET.replace("64 KB", "64 B"), "SKIMQL_BUDGET_EXCEEDED", None),
        (SET + " PARTITION INTO 3", "SKIMQL_NO_PILOT", "PARTITION INTO 3"),
        (SET.replace("f AS", "N AS"), "SKIMQL_NAME_TAKEN", "N"),
        (SET.replace("f AS", "W AS"), "SKIMQL_NAME_TAKEN", "W"),
        (SET.replace("SUM(v) AS s FROM a", "SUM(v) AS s FROM a SIZE 1 KB"), "SKIMQL_CLAUSE", None),
        (SET.replace("SUM(v) AS s FROM a", "SUM(x) AS s FROM a"), "SKIMQL_UNKNOWN_COLUMN", "x"),
        (
            SET.replace("SUM(v) AS s FROM a", "COUNT(DISTINCT v) AS s FROM a USING hash"),
            "SKIMQL_UNKNOWN_METHOD",
            None,
        ),
        (
            SET.replace(
                "SUM(v) AS s FROM a", "COUNT(DISTINCT a.v, b.v) AS s FROM a, b WHERE a.k = b.k AND a.g = b.g"
            ),
            "SKIMQL_BUDGET_EXCEEDED",
            None,
        ),
        (SET.replace("SUM(v) AS s FROM a", "COUNT(*) FROM x"), "SKIMQL_NO_STREAM", None),
    ],
)
def test_what_a_set_cannot_be_is_refused_at_its_place_and_nothing_is_kept(tmp_path, sql, code, marked):
    catalog = Catalog(tmp_path / "catalog")
    with pytest.raises(SkimqlError) as fault:
        declared_set(catalog, two_streams(), sql, {"x": arrow("k BIGINT", [(1,)])})
    assert fault.value.code == code or code is None
    assert fault.value.hint
    assert fault.value.sql == sql
    if marked is not None:
        start, end = fault.value.span
        assert sql[start:end] == marked
    assert not continuous(Catalog(catalog.folder)).views


def test_a_set_with_windows_and_groups_answers_as_its_views_do_by_themselves(tmp_path):
    schema = "k BIGINT, g BIGINT, v BIGINT, ts TIMESTAMP"
    members = {
        "n": "SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k",
        "s": "SELECT a.g, SUM(b.v) AS s FROM a JOIN b ON a.k = b.k GROUP BY a.g",
        "t": "SELECT g, SUM(v) AS s FROM a GROUP BY g ORDER BY g",
    }
    window = {"window": "2 hours", "slide": "1 hour", "time": "ts"}
    random, start = np.random.default_rng(4), datetime(2026, 1, 1, tzinfo=UTC)
    for told, options in (("", {}), ("WITH (window = '2 hours', slide = '1 hour', time = ts)", window)):
        folder = tmp_path / (told[:4] or "whole")
        catalog, streams = Catalog(folder / "c"), [stream_of(n, schema) for n in "ab"]
        own = ", ".join(f"{n} AS ({text})" for n, text in members.items())
        declared_set(
            catalog, streams, f"CREATE CONTINUOUS VIEWS w {told} ({own}) SIZE 64 KB MINIMIZE MAX ERROR"
        )
        alone = {f"{n}_1": (t.replace("SELECT", "SELECT APPROXIMATE"), options) for n, t in members.items()}
        declared(catalog, streams, alone)
        for name in "ab":
            rows = [
                (int(k), int(k) % 3, int(v), start + timedelta(minutes=int(m)))
                for k, v, m in zip(*random.integers(0, (20, 9, 300), (60, 3)).T, strict=True)
            ]
            MemorySpark(catalog, name, folder / name).run(
                [arrow(schema, rows[:40]), arrow(schema, rows[40:])]
            )
        for name in members:
            together, single = asked(catalog, name).records(), asked(catalog, f"{name}_1").records()
            assert together == single
            assert len(together) >= (1 if name == "n" else 3) * (4 if told else 1)
        found = continuous(catalog)
        keyed = [
            s for v in found.members("w") for s in planned(v, found.streams).plan.synopses if s.attributes
        ]
        assert sum(8 * s.rows * s.buckets for s in set(keyed)) <= 64 << 10


APART = {
    "d": "SELECT COUNT(DISTINCT a.k) AS n FROM a",
    "e": "SELECT COUNT(DISTINCT a.k) AS n FROM a JOIN b ON a.k = b.k",
    "k": "SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k USING key_sample",
    "f": "SELECT SUM(a.v) AS n FROM a JOIN b ON a.k = b.k JOIN x ON b.g = x.g",
}


@pytest.mark.parametrize("more", [{}, {"n": "SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k"}])
def test_what_is_planned_by_itself_stands_in_a_set_within_its_bytes_and_answers_as_alone(tmp_path, more):
    members = {**APART, **more}
    catalog, size = Catalog(tmp_path / "c"), 256 << 10
    own = ", ".join(f"{n} AS ({text})" for n, text in members.items())
    statics = {"x": arrow("g BIGINT", [(1,), (2,), (2,)])}
    made = declared_set(
        catalog,
        two_streams(),
        f"CREATE CONTINUOUS VIEWS w ({own}) SIZE 256 KB MINIMIZE AVERAGE ERROR",
        statics,
    )
    assert f"planned one by one, in {size // len(members):,} bytes each" in made.stored.stages
    assert made.stored.stages.endswith("together: d, e, k, f")
    assert _bytes(made.views) <= size
    left, right = events(1, 500, 300), events(2, 500, 300)
    MemorySpark(catalog, "a", tmp_path / "a").run([arrow(SCHEMA, left)])
    MemorySpark(catalog, "b", tmp_path / "b", statics).run([arrow(SCHEMA, right)])
    net = {}
    for k, _, _, op in left:
        net[k] = net.get(k, 0) + (-1 if op == "d" else 1)
    alive = {k for k, n in net.items() if n}
    others = {}
    for k, _, _, op in right:
        others[k] = others.get(k, 0) + (-1 if op == "d" else 1)
    folded = sum(
        va * (-1 if oa == "d" else 1) * (-1 if ob == "d" else 1) * {1: 1, 2: 2}.get(gb, 0)
        for ka, _, va, oa in left
        for kb, gb, _, ob in right
        if ka == kb
    )
    wanted = {
        "d": len(alive),
        "e": len(alive & {k for k, n in others.items() if n}),
        "k": truth(left, right),
        "f": folded,
        "n": truth(left, right),
    }
    for name in members:
        (row,) = asked(catalog, name).records()
        assert row["n_low"] <= wanted[name] <= row["n_high"], name
    assert "views read" in explain(catalog, "w").rows[0][0]


@pytest.mark.parametrize("names", ["dek", "ef"])
def test_the_size_that_a_refusal_names_is_enough(tmp_path, names):
    own = ", ".join(f"{n} AS ({APART[n]})" for n in names)
    sql, statics = (
        f"CREATE CONTINUOUS VIEWS w ({own}) %s MINIMIZE AVERAGE ERROR",
        {"x": arrow("g BIGINT", [(1,)])},
    )
    with pytest.raises(SkimqlError, match="share of one of") as fault:
        declared_set(Catalog(tmp_path / "a"), two_streams(), sql % "SIZE 300 B", statics)
    made = declared_set(Catalog(tmp_path / "b"), two_streams(), sql % fault.value.hint, statics)
    assert _bytes(made.views) <= int(fault.value.hint.removeprefix("SIZE "))
