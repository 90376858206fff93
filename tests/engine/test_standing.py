"""CREATE SKETCHES … FOR QUERIES: merged vertices in the executed plan, one pass a table, honest answers."""

from __future__ import annotations

import pytest
from support.golden import golden
from support.theory import most_misses
from support.workloads import TPCH_JOINS

from skimql import SkimqlError, UnsupportedQuery
from skimql.engine import maintain

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
        f"CREATE SKETCHES w FOR QUERIES ({'; '.join(queries)}) SIZE 16 MB MINIMIZE AVERAGE ERROR"
    ).value
    assert sorted(scans) == sorted(SIZES)
    assert "34 sketches" in told
    assert len(session.catalog.workload("w").sketches) <= 16
    misses = 0
    for sql in queries:
        answer = session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1))
        truth = session.spark.sql(sql).collect()[0][0]
        assert any("sketches w" in n for n in answer.notes), sql
        misses += not answer.low <= truth <= answer.high
    # Intervals of 95 %, one seed; that the numbers themselves are right is the next test's.
    assert misses <= most_misses(len(queries), 0.05)
    assert len(scans) == len(SIZES), "answers must not scan again"
    assert session.sql("EXPLAIN SKETCHES w").value == told


def test_shared_sketches_without_counters_are_exact(workload_one):
    session, queries = workload_one
    session.sql(f"CREATE SKETCHES w FOR QUERIES ({'; '.join(queries[:4])}) SIZE 64 MB MINIMIZE MAX ERROR")
    for sql in queries[:4]:
        answer = session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1))
        assert answer.value == session.spark.sql(sql).collect()[0][0]


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


def test_sums_and_averages_share_a_workload(session):
    session.table("p", session.spark.sql("SELECT id % 50 AS k, id AS v FROM range(500)"))
    session.table("q", session.spark.sql("SELECT id % 50 AS k FROM range(200)"))
    sql = "SELECT SUM(v) AS s, AVG(v) AS a, COUNT(*) AS n FROM p JOIN q ON p.k = q.k"
    session.sql(
        f"CREATE SKETCHES w FOR QUERIES ({sql}; SELECT COUNT(*) FROM p JOIN q USING (k)) SIZE 1 MB MINIMIZE AVERAGE ERROR"
    )
    answer = session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1))
    assert any("sketches w" in n for n in answer.notes)
    assert [c.value for c in answer.rows[0]] == list(session.spark.sql(sql).collect()[0])


def test_what_a_workload_cannot_be_is_said(workload_one):
    session, queries = workload_one
    create = "CREATE SKETCHES w FOR QUERIES ({}) SIZE {} MINIMIZE AVERAGE ERROR{}"
    with pytest.raises(SkimqlError) as caught:
        session.sql(create.format("; ".join(queries), "1 KB", ""))
    assert caught.value.code == "SKIMQL_BUDGET_EXCEEDED"
    with pytest.raises(UnsupportedQuery, match="PARTITION"):
        session.sql(create.format(queries[0], "1 MB", " PARTITION INTO 4"))
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
