"""COUNT(DISTINCT) and set expressions end to end: against Spark's exact answer, and in intervals where sketches answer."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest
from support.exact import exact_answers
from support.memory import InMemory
from support.seeds import ManySeeds
from support.tables import CASES, register, register_cases
from support.theory import most_misses

from skimql import AccuracyNotReached, UnsupportedQuery
from skimql.engine.execution import build as maintain
from skimql.engine.execution import message_limit
from skimql.engine.execution.partial_aggregate import task
from skimql.engine.results import distinct
from skimql.engine.settings import Settings
from skimql.optimizer.distinct_count import JoinedPairs, KeySets, PairsByKey, Part
from skimql.sketches.distinct.join_distinct import HUBS
from skimql.sketches.distinct.set_expression import Union

FAN = "FROM fan JOIN sale ON fan.pid = sale.pid"


# The shared cases x, y and z; C34, C36, C32.
TABLES = CASES | {
    "t": ("k INT, v INT", [(1, None), (1, 4), (1, None)]),
    "fan": ("pid INT, stock INT", [(1, 100), (2, 110)]),
    "sale": ("pid BIGINT, qty INT", [(1, 3), (1, 4), (2, 8)]),
    "e": ("k INT, v INT", []),
}


@pytest.fixture
def cases(session):
    register(session, **TABLES)
    return session


def compared(session, select, among=(), asked=None):
    """Values of an approximate query, all of them exact, and Spark's."""
    answer = (asked or session).sql(f"SELECT APPROXIMATE {select}")
    assert all(getattr(c, "exact", True) for row in answer.rows for c in row), select
    values = [tuple(getattr(c, "value", c) for c in row) for row in answer.rows]
    return values, exact_answers(session, among or (select,))[select]


SMALL = [
    # One table: several columns, an expression, a filter, a NULL among them.
    "COUNT(DISTINCT v), COUNT(DISTINCT k, v), COUNT(DISTINCT k + 1), COUNT(DISTINCT NULL), COUNT(*) FROM t",
    # C34, and expressions over distinct counts beside other aggregates.
    "COUNT(v), COUNT(*), SUM(v), AVG(v), COUNT(DISTINCT v), COUNT(*) / COUNT(DISTINCT v) AS r "
    "FROM t JOIN x ON t.k = x.id",
    # C36, C37: one side, both sides, the key alone and with either.
    f"COUNT(DISTINCT stock), COUNT(DISTINCT stock, qty), COUNT(DISTINCT fan.pid), COUNT(DISTINCT sale.pid, stock), "
    f"COUNT(DISTINCT fan.pid, stock, qty), COUNT(DISTINCT qty % 2) FILTER (WHERE stock > 100) AS f {FAN}",
    # C15: the column of USING is one column.
    "COUNT(DISTINCT id) FROM x JOIN y USING (id)",
    # C32: of nothing 0, not NULL.
    "COUNT(DISTINCT v), COUNT(DISTINCT n, v) FROM e JOIN x ON e.k = x.id",
    # Three tables: whatever has no counted column is a filter.
    "COUNT(DISTINCT n), COUNT(DISTINCT w), COUNT(DISTINCT m, w), COUNT(DISTINCT z.id) "
    "FROM x, y, z WHERE x.id = y.id AND y.id = z.id",
    # Groups of one table: its own values, the key, the values of the other, of both.
    "x.id, COUNT(DISTINCT m), COUNT(DISTINCT y.id), COUNT(DISTINCT n), COUNT(DISTINCT n, m), COUNT(*) "
    "FROM x JOIN y ON x.id = y.id GROUP BY x.id",
    "m, COUNT(DISTINCT n) AS d, COUNT(DISTINCT m) FROM x JOIN y ON x.id = y.id GROUP BY m "
    "HAVING d > 0 ORDER BY m DESC LIMIT 1",
    "COUNT(DISTINCT k) FROM (SELECT id AS k FROM x INTERSECT SELECT id FROM y)",
    "COUNT(DISTINCT k) FROM (SELECT id AS k FROM x UNION SELECT id FROM y EXCEPT SELECT pid FROM sale WHERE qty > 7)",
]


def test_small_tables_come_out_exact(cases):
    """All in memory; on Spark both sides of a join, groups, and a set expression."""
    for asked, chosen in ((InMemory(TABLES), SMALL), (cases, (SMALL[2], SMALL[6], SMALL[9]))):
        for select in chosen:
            got, truth = compared(cases, select, SMALL, asked)
            assert sorted(got) == sorted(truth), select


def test_values_are_told_apart_as_spark_does(session):
    """C07 (minus zero, NaN), text and its trailing blanks, decimals, dates, widths of integers across sets."""
    session.table(
        "v",
        session.spark.sql(
            "SELECT * FROM VALUES (CAST('-0.0' AS DOUBLE), 'a', 1.20BD, DATE '2024-01-02', CAST(1 AS TINYINT)),"
            "(0.0D, 'a ', 1.2BD, DATE '2024-01-02', CAST(2 AS TINYINT)), (double('NaN'), 'A', 1.21BD, NULL, NULL),"
            "(-double('NaN'), '', NULL, DATE '2024-01-03', CAST(1 AS TINYINT)), (1.5D, NULL, 7BD, NULL, NULL)"
            " AS v(d, s, c, day, i)"
        ),
    )
    got, truth = compared(
        session,
        "COUNT(DISTINCT d), COUNT(DISTINCT s), COUNT(DISTINCT c), COUNT(DISTINCT day), COUNT(DISTINCT i),"
        " COUNT(DISTINCT d, s), COUNT(DISTINCT d > 0) FROM v",
    )
    assert got == truth
    assert truth[0][0] == 3
    union = "COUNT(DISTINCT i, s) FROM (SELECT i, s FROM v UNION SELECT CAST(i AS BIGINT), s FROM v)"
    got, truth = compared(session, union)
    assert got == truth


@functools.cache
def edges():
    rng = np.random.default_rng(5)
    tables = []
    for name, first in (("a", 0), ("c", 100)):
        left, right = np.nonzero(rng.random((400, 300)) < 0.02)
        tables.append(pa.table({name: left, "b": right + first}))
    return tables


@pytest.fixture
def graph(session):
    """r(a, b) and s(b, c): a random graph of 400 x 400 x 400 nodes, about 6 edges for each a; half of the b join."""
    for name, table in zip("rs", edges(), strict=True):
        session.table(name, session.spark.createDataFrame(table))
    session.settings = session.settings.with_text({"sparse": "false", "buckets": "1024"})
    return session


GRAPH = (
    "COUNT(DISTINCT a) AS one, COUNT(DISTINCT a, r.b) AS with_key, COUNT(DISTINCT r.b) AS of_key, "
    "COUNT(DISTINCT a, c) AS two, COUNT(*) / COUNT(DISTINCT c) AS ratio FROM r JOIN s ON r.b = s.b WHERE a < 300"
)
CONFIDENCE = 0.95


def graph_in_memory(seed=1):
    return InMemory(dict(zip("rs", edges(), strict=True)), sparse=False, buckets=1024, seed=seed)


def misses_of(select, seeds):
    """Of each item: how many of the intervals of `seeds` miss the exact value."""
    sql = f"SELECT APPROXIMATE {select}"
    truth = [getattr(c, "value", c) for c in graph_in_memory().run(sql).exact().rows[0]]
    misses = [0] * len(truth)
    for seed in range(seeds):
        cells = graph_in_memory(seed).sql(sql).rows[0]
        for i, (cell, right) in enumerate(zip(cells, truth, strict=True)):
            misses[i] += not cell.low <= right <= cell.high
    return misses


def test_intervals_cover_as_often_as_promised():
    """Each seed is one trial of p = 5 %; false failure below 1e-6 for each item."""
    assert max(misses_of(GRAPH, 40)) <= most_misses(40, 1 - CONFIDENCE)


def test_the_sketches_do_estimate():
    """The trials above are no exact maps in disguise, and no interval is too wide to see anything."""
    cells = graph_in_memory().sql(f"SELECT APPROXIMATE {GRAPH}").rows[0]
    assert not any(c.exact for c in cells)
    assert all(c.half_width < 0.5 * c.value or c.notes == (HUBS,) for c in cells)
    assert all(c.certified for c in cells)


def test_spark_makes_the_values_of_these_trials(graph):
    theirs = graph.sql(f"SELECT APPROXIMATE {GRAPH} SEED 1").rows[0]
    own = graph_in_memory().sql(f"SELECT APPROXIMATE {GRAPH}").rows[0]
    for one, other in zip(own, theirs, strict=True):
        assert (one.low, one.value, one.high) == pytest.approx((other.low, other.value, other.high), rel=1e-9)


def test_a_union_instead_of_an_intersection_is_seen(monkeypatch):
    monkeypatch.setitem(distinct._SETS, "intersect", Union)
    (misses,) = misses_of("COUNT(DISTINCT r.b) FROM r JOIN s ON r.b = s.b", 15)
    assert misses > most_misses(15, 1 - CONFIDENCE)


def test_the_size_of_one_side_taken_for_both_is_seen(monkeypatch):
    original = distinct.join_distinct
    monkeypatch.setattr(distinct, "join_distinct", lambda r, s, a, c, level: original(r, s, a, a, level))
    (misses,) = misses_of("COUNT(DISTINCT a, c) FROM r JOIN s ON r.b = s.b WHERE a < 80", 15)
    assert misses > most_misses(15, 1 - CONFIDENCE)


def test_any_split_of_the_data_gives_the_same_bits(graph):
    """C49: rows shuffled, in 1, 2 and 7 tasks."""
    many = ManySeeds(graph, f"SELECT APPROXIMATE {GRAPH}")
    states = []
    for tasks in (1, 2, 7):
        built = {}
        for prepared, batches in many.scans:
            table = pa.Table.from_batches(batches)
            table = table.take(np.random.default_rng(tasks).permutation(table.num_rows))
            rows = []
            for n in range(tasks):
                part = table.slice(
                    n * table.num_rows // tasks,
                    (n + 1) * table.num_rows // tasks - n * table.num_rows // tasks,
                )
                sent = task(prepared.sketches, prepared.feeds)(iter(part.combine_chunks().to_batches()))
                rows += [row for batch in sent for row in batch.to_pylist()]
            built |= maintain.add_up(prepared, rows)
        states.append({i: b.sketch.state() for i, b in built.items()})
    for other in states[1:]:
        assert states[0].keys() == other.keys()
        for i, arrays in states[0].items():
            assert arrays.keys() == other[i].keys()
            assert all((array == other[i][name]).all() for name, array in arrays.items())


@pytest.mark.usefixtures("as_users_have_it")
def test_a_huge_and_a_tiny_set(session):
    """C41: 50 keys in common. Never above the tiny set, and an interval that knows how little it knows."""
    session.table("big", session.spark.createDataFrame(pa.table({"k": np.arange(300_000)})))
    session.table("tiny", session.spark.createDataFrame(pa.table({"k": np.arange(299_950, 300_950)})))
    join = session.sql(
        "SELECT APPROXIMATE COUNT(DISTINCT big.k) FROM big JOIN tiny ON big.k = tiny.k"
    ).estimate
    sets = session.sql(
        "SELECT APPROXIMATE COUNT(DISTINCT k) FROM (SELECT k FROM big INTERSECT SELECT k FROM tiny)"
    ).estimate
    for found in (join, sets):
        assert found.low <= 50 <= found.high <= 1_000
        assert found.value <= 1_000
        assert not found.exact


def counts_of(session, select):
    return [a.distinct for a in session.plan(f"SELECT APPROXIMATE {select}").build.aggregates]


def test_what_is_built_for_which_projection(graph):
    plan = graph.plan(f"SELECT APPROXIMATE COUNT(*), {GRAPH}").build
    kinds = [type(a.distinct) for a in plan.aggregates]
    assert kinds == [type(None), Part, Part, KeySets, JoinedPairs, Part]
    # One scan of each table; what is folded for a distinct count makes COUNT(*) exact.
    assert [s.table for s in plan.scans] == ["r", "s"]
    text = graph.sql(
        "EXPLAIN SELECT APPROXIMATE COUNT(DISTINCT a), COUNT(DISTINCT a, c) FROM r JOIN s ON r.b = s.b"
    ).value
    for line in (
        "level sketch 32 x 256 of distinct (`a`), with an exact message from s by b",
        "sample of 16 distinct (`a`) with all their (`b`)",
        "sample of 16 distinct (`c`) with all their (`b`)",
    ):
        assert line in text, text


def test_a_forced_method_is_honoured_or_refused(graph):
    join = "FROM r JOIN s ON r.b = s.b USING"
    assert isinstance(counts_of(graph, f"COUNT(DISTINCT a) {join} join_distinct")[0], JoinedPairs)
    assert isinstance(counts_of(graph, f"COUNT(DISTINCT r.b) {join} join_distinct")[0], PairsByKey)
    assert isinstance(counts_of(graph, f"COUNT(DISTINCT a) {join} distinct")[0], Part)
    for select in (
        f"COUNT(DISTINCT a, c) {join} distinct",
        f"COUNT(DISTINCT a) {join} hash",
        f"COUNT(DISTINCT a), COUNT(*) {join} distinct",
        "COUNT(DISTINCT a) FROM r USING join_distinct",
    ):
        with pytest.raises(UnsupportedQuery, match="does not estimate") as caught:
            graph.plan(f"SELECT APPROXIMATE {select}")
        assert caught.value.code == "SKIMQL_UNKNOWN_METHOD"
        assert caught.value.span is not None


def test_a_message_too_large_is_done_without_or_left_to_spark(graph, monkeypatch):
    monkeypatch.setattr(message_limit, "DEFAULT_LIMIT_BYTES", 1_000)
    answer = graph.sql("SELECT APPROXIMATE COUNT(DISTINCT a, r.b) FROM r JOIN s ON r.b = s.b")
    assert isinstance(answer.plan.aggregates[0].distinct, PairsByKey)
    exact = graph.sql("EXACT SELECT COUNT(DISTINCT a, r.b) FROM r JOIN s ON r.b = s.b").value
    assert answer.low <= exact <= answer.high
    assert not answer.estimate.certified
    graph.settings = graph.settings.with_text({"sparse": "true"})
    select = "COUNT(DISTINCT a), COUNT(*) FROM r JOIN s ON r.b = s.b"
    answer = graph.sql(f"SELECT APPROXIMATE {select}")
    assert [c.value for c in answer.rows[0]] == list(graph.sql(f"EXACT SELECT {select}").rows[0])
    assert any(note.startswith("s joined by Spark") for note in answer.notes)


@pytest.mark.parametrize(
    ("select", "code"),
    [
        ("COUNT(DISTINCT x.n, y.m, z.w) FROM x, y, z WHERE x.id = y.id AND y.id = z.id", "DISTINCT_JOIN"),
        (
            "COUNT(DISTINCT x.n, z.w) FROM x, y, z WHERE x.n = y.m AND y.id = z.id",
            "DISTINCT_JOIN",
        ),
        (
            "w, COUNT(DISTINCT x.n % 2) FROM x, y, z WHERE x.id = y.id AND y.m = z.id GROUP BY w",
            "DISTINCT_JOIN",
        ),
        ("COUNT(DISTINCT array(id)) FROM x", "DISTINCT_TYPE"),
        ("COUNT(DISTINCT w COLLATE UTF8_LCASE) FROM z", "DISTINCT_TYPE"),
        ("COUNT(DISTINCT k) FROM (SELECT id + 1 AS k FROM x UNION SELECT concat(w, 1) FROM z)", "KEY_TYPES"),
    ],
)
def test_what_is_refused(cases, select, code):
    with pytest.raises(UnsupportedQuery) as caught:
        cases.plan(f"SELECT APPROXIMATE {select}")
    assert caught.value.code == f"SKIMQL_{code}", str(caught.value)
    assert caught.value.hint


@pytest.mark.usefixtures("as_users_have_it")
def test_an_asked_error_sizes_the_sketch_and_a_missed_one_is_acted_upon(session):
    session.table("big", session.spark.createDataFrame(pa.table({"k": np.arange(100_000)})))
    session.settings = session.settings.with_text({"sparse": "false"})
    select = "SELECT APPROXIMATE COUNT(DISTINCT k) FROM big ERROR WITHIN"
    finer, coarser = (session.plan(f"{select} {error}").build.synopses[0] for error in ("1%", "5%"))
    assert finer.buckets > coarser.buckets
    answer = session.sql(f"{select} 2%")
    assert answer.low <= 100_000 <= answer.high
    assert answer.estimate.half_width <= 0.02 * answer.value
    with pytest.raises(AccuracyNotReached):
        session.sql(f"{select} 0.01% BEHAVIOR 'strict' SIZE 64 KB")
    plan = session.plan("SELECT APPROXIMATE COUNT(DISTINCT k) FROM big SIZE 64 KB").build
    assert 32 * plan.synopses[0].buckets * 24 <= 65_536


def test_counts_of_an_asked_error_are_planned_and_what_is_cheaper_exactly_is_run_so(graph):
    """Few values exactly, many by a sketch; EXPLAIN has both with their figures; a size is kept to."""
    graph.settings = Settings()  # nothing set by hand
    few = "SELECT APPROXIMATE COUNT(DISTINCT a % 7) FROM r ERROR WITHIN 5%"
    answer = graph.sql(few)
    assert answer.value == 7
    assert any(note.startswith("run exactly: predicted to be the cheapest") for note in answer.notes)
    text = graph.sql(f"EXPLAIN {few}").rows
    lines = "\n".join(str(row[0]) for row in text)
    assert "choice: exact run" in lines
    assert "    distinct: ±" in lines
    both = "SELECT APPROXIMATE COUNT(DISTINCT a, c), COUNT(*) FROM r JOIN s ON r.b = s.b"
    sized = graph.sql(f"{both} SIZE 3 MB")
    assert sized.bytes_used <= 3 << 20
    assert sized.notes[0].startswith("by join distinct")
    exact = graph.sql(f"EXACT SELECT{both.removeprefix('SELECT APPROXIMATE')}").rows[0]
    assert all(c.low <= right <= c.high for c, right in zip(sized.rows[0], exact, strict=True))
    forced = graph.sql(f"{few} USING distinct")
    assert forced.rows[0][0].low <= 7 <= forced.rows[0][0].high
    assert forced.notes[0].startswith("by distinct")


def test_distinct_counts_in_groups_go_with_having_order_and_limit(session):
    """Beside other aggregates, over expressions of them; sketches decide, and Spark says the same where they are exact."""
    register_cases(session)
    select = (
        "m, COUNT(DISTINCT n) AS d, COUNT(*) AS c, SUM(n) / COUNT(DISTINCT x.id) AS r, COUNT(DISTINCT n, m) AS p "
        "FROM x JOIN y ON x.id = y.id GROUP BY m HAVING COUNT(DISTINCT n) >= 1 AND COUNT(*) > 0 "
        "ORDER BY d DESC, m LIMIT 3"
    )
    got, truth = compared(session, select)
    assert got == truth
    assert len(truth) > 1


def test_groups_that_miss_are_run_exactly(graph):
    answer = graph.sql(
        "SELECT APPROXIMATE a % 2 AS g, COUNT(DISTINCT c) AS d FROM r JOIN s ON r.b = s.b GROUP BY a % 2 "
        "ORDER BY g ERROR WITHIN 0.1% SIZE 250 KB BEHAVIOR 'partial_run_on_base_table'"
    )
    exact = graph.sql(
        "EXACT SELECT a % 2 AS g, COUNT(DISTINCT c) FROM r JOIN s ON r.b = s.b GROUP BY a % 2 ORDER BY g"
    )
    assert [(row[0], row[1].value) for row in answer.rows] == list(exact.rows)
    assert any("run exactly" in note for note in answer.notes)
