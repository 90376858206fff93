"""CREATE SKETCHES … FOR QUERIES: merged vertices in the executed plan, one pass a table, honest answers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.exact import exact_answers
from support.golden import golden
from support.standing_seeds import planned
from support.theory import most_misses
from support.workloads import TPCH_JOINS

from skimql import SkimqlError, UnsupportedQuery
from skimql.engine.execution import build as maintain

pytestmark = pytest.mark.spark

SIZES = {"part": 400, "partsupp": 1600, "supplier": 50, "customer": 300, "orders": 900, "lineitem": 2400}


def register_tpch(session):
    """The six relations with their join columns, uniform keys, small."""
    columns = {
        "part": "id AS partkey",
        "partsupp": "id % 400 AS partkey, id * 7 % 50 AS suppkey",
        "supplier": "id AS suppkey, id % 5 AS nationkey",
        "customer": "id AS custkey, id % 5 AS nationkey",
        "orders": "id AS orderkey, id * 11 % 300 AS custkey",
        "lineitem": "id % 900 AS orderkey, id * 13 % 400 AS partkey, id * 17 % 50 AS suppkey",
    }
    for name, rows in SIZES.items():
        session.table(name, session.spark.sql(f"SELECT {columns[name]} FROM range({rows})"))


def tpch_sql(joins):
    """The COUNT query of the golden workload made of these joins; 10 is lineitem with itself."""
    if joins == [10]:
        return "SELECT COUNT(*) AS n FROM lineitem a JOIN lineitem b ON a.orderkey = b.orderkey"
    chosen = [TPCH_JOINS[j - 1] for j in joins]
    names = list(dict.fromkeys(n for left, _, right, _ in chosen for n in (left, right)))
    on = " AND ".join(f"{a}.{x} = {b}.{y}" for a, x, b, y in chosen)
    return f"SELECT COUNT(*) AS n FROM {', '.join(names)} WHERE {on}"


def truths_of(session, queries):
    """What Spark counts, in the order of the queries."""
    texts = [sql.removeprefix("SELECT ") for sql in queries]
    found = exact_answers(session, texts)
    return [found[text][0][0] for text in texts]


def without_age(text):
    return [line for line in text.splitlines() if not line.startswith("the statistics are")]


@pytest.fixture
def workload_one(session):
    register_tpch(session)
    data = golden("tpch_workload")
    return session, [tpch_sql(data["queries"][str(n)]) for n in data["workload1"]]


def test_workload_one_runs_on_merged_vertices_in_one_pass_a_table(workload_one, monkeypatch):
    session, queries = workload_one
    scans = []
    original = maintain.prepare
    monkeypatch.setattr(
        maintain, "prepare", lambda plan, scan, *rest: scans.append(scan.table) or original(plan, scan, *rest)
    )
    session.sql("SET skimql.sparse = false")
    told = session.sql(
        f"CREATE SKETCHES w FOR QUERIES ({'; '.join(queries)}) SIZE 4 MB MINIMIZE AVERAGE ERROR"
    ).value
    assert sorted(scans) == sorted(SIZES)
    assert "34 sketches" in told
    assert len(session.catalog.workload("w").sketches) <= 16
    misses = 0
    for sql, truth in zip(queries, truths_of(session, queries), strict=True):
        answer = session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1))
        assert any("sketches w" in n for n in answer.notes), sql
        misses += not answer.low <= truth <= answer.high
    # Intervals of 95 %, one seed; that the numbers themselves are right is the next test's.
    assert misses <= most_misses(len(queries), 0.05)
    assert len(scans) == len(SIZES), "answers must not scan again"
    assert without_age(session.sql("EXPLAIN SKETCHES w").value) == without_age(told)


def register_skewed(session):
    """The six relations with Zipf keys, the ranks of every column permuted on their own."""
    rng = np.random.default_rng(1)
    domains = {"partkey": 400, "suppkey": 50, "nationkey": 5, "custkey": 300, "orderkey": 900}
    columns = {
        "part": ["partkey"],
        "partsupp": ["partkey", "suppkey"],
        "supplier": ["suppkey", "nationkey"],
        "customer": ["custkey", "nationkey"],
        "orders": ["orderkey", "custkey"],
        "lineitem": ["orderkey", "partkey", "suppkey"],
    }
    for name, keys in columns.items():
        table = {}
        for key in keys:
            shares = 1 / np.arange(1, domains[key] + 1)
            ranks = rng.choice(domains[key], 4 * SIZES[name], p=shares / shares.sum())
            table[key] = rng.permutation(domains[key])[ranks]
        session.table(name, session.spark.createDataFrame(pa.table(table)))


@pytest.mark.usefixtures("as_users_have_it")
def test_workload_one_runs_on_merged_vertices_and_parts_where_they_gain(workload_one):
    session, queries = workload_one
    register_skewed(session)
    create = (
        f"CREATE OR REPLACE SKETCHES w FOR QUERIES ({'; '.join(queries)}) SIZE 64 MB MINIMIZE AVERAGE ERROR"
    )
    told = session.sql(f"{create} PARTITION INTO 4").value
    # The statement plans as this does, on the statistics that the session keeps.
    declared = planned(session, f"{create} PARTITION INTO 4")
    plan, shared = declared.plans[0], declared.workload
    heads = session.catalog.heads()
    assert len(shared.graph.vertices) <= 16
    assert len(heads) == sum(len(v.rows) for v in shared.vertices) > len(shared.graph.vertices)
    assert sorted(h.cell for h in heads) == sorted(s.cell for s in plan.synopses)
    assert {a.class_name for h in heads if h.cell for a in h.attributes} >= {n for n, _ in plan.partitions}
    assert f"16 sketches of {len(heads)} cells" in told
    gains, numbers = shared.partition.predicted_gains, shared.graph.edge_classes()
    users = {n: set() for n in numbers}
    for edge, number in zip(shared.graph.edges, numbers, strict=True):
        users[number].add(edge.query)
    parted = [users[number] for number, _ in shared.partition.classes]
    assert parted
    assert all(max(gains[q] for q in own) >= 1.2 for own in parted)
    assert all(gains[q] == 1.0 for q in range(len(gains)) if not any(q in own for own in parted))
    assert plan_error(shared, "after") < plan_error(shared, "before") / 1.2
    # Each cell is an exact map still: a tuple in the wrong part, in none or in two shows in the sum over parts.
    some = queries[1:4] + queries[6:8] + queries[9:10]
    for sql, truth in zip(some, truths_of(session, some), strict=True):
        answer = session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1))
        assert any("sketches w" in n for n in answer.notes)
        assert (answer.low, answer.value, answer.high) == (truth,) * 3
    assert planned(session, create).plans[0].partitions == (), "parts are made where they are asked for"


def plan_error(workload, when):
    """The predicted error of the workload before or after the last stage."""
    return np.sqrt(np.mean(np.square(getattr(workload.stages[-1], when).relative_errors)))


def test_explain_tells_every_stage_with_and_without_it(session):
    for name in "pq":
        session.table(name, session.spark.sql("SELECT id % 50 AS k, id % 3 AS v FROM range(500)"))
    sql = "SELECT COUNT(*) AS n FROM p JOIN q ON p.k = q.k WHERE p.v = 1"
    told = session.sql(f"CREATE SKETCHES w FOR QUERIES ({sql}) SIZE 1 MB MINIMIZE AVERAGE ERROR").value
    lines = session.sql("EXPLAIN SKETCHES w").value.splitlines()
    assert "statistics: exact" in lines[1]
    assert "independent" in lines[1]
    for stage in ("share", "allocate", "partition"):
        at = next(i for i, line in enumerate(lines) if line.startswith(stage))
        if lines[at + 1] != "  changes nothing here":
            assert lines[at + 1].startswith("  before 2 sketches, 1 xi class, 1,024 KB")
            assert lines[at + 2].startswith("  after  2 sketches, 1 xi class")
            assert lines[at + 1][9:] != lines[at + 2][9:]
    # J = 167 * 10; F2 of 167 tuples over 50 keys and 500 over 50; half a megabyte each.
    f, g = np.bincount(np.arange(500)[np.arange(500) % 3 == 1] % 50), np.full(50, 10)
    words = 65_536
    error = np.sqrt(np.pi / 2 * ((f @ f) * (g @ g) + (f @ g) ** 2 - 2 * ((f * g) @ (f * g))) / words) / (
        f @ g
    )
    (own,) = [line for line in lines if line.startswith("  1 p")]
    assert abs(float(own.split(": ")[1].split(" %")[0]) / (100 * error) - 1) < 0.02
    assert all(f"without {stage} " in own for stage in ("share", "allocate", "partition"))
    assert any("bytes, read by 1 query" in line for line in lines)
    assert lines[-1].startswith("the statistics are")
    assert without_age("\n".join(lines)) == without_age(told)


def test_shared_sketches_without_counters_are_exact(workload_one):
    session, queries = workload_one
    session.sql(f"CREATE SKETCHES w FOR QUERIES ({'; '.join(queries[:4])}) SIZE 64 MB MINIMIZE MAX ERROR")
    for sql, truth in zip(queries, truths_of(session, queries), strict=True):
        if sql in queries[:4]:
            assert session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1)).value == truth


def test_what_is_not_asked_in_the_workload_is_built_anew(workload_one):
    session, queries = workload_one
    session.sql(f"CREATE SKETCHES w FOR QUERIES ({queries[0]}) SIZE 1 MB MINIMIZE AVERAGE ERROR")
    first = queries[0].replace("SELECT", "SELECT APPROXIMATE", 1)
    assert any("sketches w" in n for n in session.sql(first).notes)
    assert not session.sql(f"{first} SEED 3").notes
    assert not session.sql(
        "SELECT APPROXIMATE COUNT(*) FROM orders a JOIN orders b ON a.custkey = b.custkey"
    ).notes
    register_tpch(session)
    assert not session.sql(first).notes, "a table registered anew is another table"


def test_groups_make_it_another_question(session):
    session.table("p", session.spark.sql("SELECT id % 50 AS k, id % 3 AS g FROM range(500)"))
    session.table("q", session.spark.sql("SELECT id % 50 AS k FROM range(200)"))
    sql = "SELECT COUNT(*) AS n FROM p JOIN q ON p.k = q.k"
    session.sql(f"CREATE SKETCHES w FOR QUERIES ({sql}) SIZE 1 MB MINIMIZE AVERAGE ERROR")
    assert session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1)).value == 2000
    grouped = session.sql(f"{sql.replace('SELECT', 'SELECT APPROXIMATE', 1)} GROUP BY g")
    assert sorted(row[0].value for row in grouped.rows) == [664, 668, 668]


def test_sums_and_averages_share_a_workload(session):
    session.table("p", session.spark.sql("SELECT id % 50 AS k, id AS v FROM range(500)"))
    session.table("q", session.spark.sql("SELECT id % 50 AS k FROM range(200)"))
    sql = "SELECT SUM(v) AS s, AVG(v) AS a, COUNT(*) AS n FROM p JOIN q ON p.k = q.k"
    session.sql(
        f"CREATE SKETCHES w FOR QUERIES ({sql}; SELECT COUNT(*) FROM p JOIN q USING (k)) SIZE 1 MB MINIMIZE AVERAGE ERROR"
    )
    answer = session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1))
    assert any("sketches w" in n for n in answer.notes)
    assert [c.value for c in answer.rows[0]] == list(session.sql(sql).collect()[0])


def test_what_a_workload_cannot_be_is_said(workload_one):
    session, queries = workload_one
    create = "CREATE SKETCHES w FOR QUERIES ({}) SIZE {} MINIMIZE AVERAGE ERROR{}"
    with pytest.raises(SkimqlError) as caught:
        session.sql(create.format("; ".join(queries), "1 KB", ""))
    assert caught.value.code == "SKIMQL_BUDGET_EXCEEDED"
    with pytest.raises(UnsupportedQuery, match="without a join"):
        session.sql(create.format("SELECT COUNT(*) FROM part", "1 MB", ""))
    with pytest.raises(SkimqlError, match="nosuch") as caught:
        session.sql(
            create.format("SELECT COUNT(*) FROM part JOIN nosuch ON part.partkey = nosuch.k", "1 MB", "")
        )
    assert caught.value.span is not None
    session.sql(create.format(queries[0], "1 MB", ""))
    with pytest.raises(UnsupportedQuery, match="already"):
        session.sql(create.format(queries[0], "1 MB", ""))
    with pytest.raises(SkimqlError, match="no sketches"):
        session.sql("EXPLAIN SKETCHES nosuch")
