"""What files tell of a join before anything is read; their figures are given."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.engine.queries import footers as footers_module
from skimql.engine.queries.footers import Footers
from skimql.engine.sources.keys import with_key_types
from skimql.optimizer.candidates import first_sample
from skimql.parser.statement import parse_statement

THREE = "COUNT(*) FROM x JOIN y ON x.id = y.id JOIN z ON y.m = z.id"


def footers(monkeypatch, tuples, distinct=100.0, text=THREE):
    found = Footers(None, None, query(text, XYZ))
    found.__dict__["tuples"], found.__dict__["nbytes"] = tuples, (None,) * len(tuples)
    monkeypatch.setattr(Footers, "_distinct", lambda self, joined: distinct)
    monkeypatch.setattr(Footers, "_seen", lambda self, joined: math.inf)
    return found


def test_joins_of_evenly_spread_keys(monkeypatch):
    found = footers(monkeypatch, (1000.0, 200.0, 50.0))
    sizes = {1000 * 200 / 100, 200 * 50 / 100}
    assert found.outputs[0] in sizes
    assert found.outputs[1] == pytest.approx(1000 * 200 * 50 / 100**2)
    assert 0.0 < found.exact_seconds < math.inf


@pytest.mark.parametrize(("tuples", "distinct"), [((1000.0, None, 50.0), 100.0), ((1.0, 2.0, 3.0), math.inf)])
def test_what_files_do_not_tell_is_endless(monkeypatch, tuples, distinct):
    found = footers(monkeypatch, tuples, distinct)
    assert found.outputs == (math.inf, math.inf)
    assert found.exact_seconds == math.inf


def test_spark_shares_the_bytes_of_files_out_by_the_columns_that_are_read(session, tmp_path):
    rows = pa.table(
        {"id": np.arange(5_000), "v": np.arange(5_000) % 7, "t": [f"text {n}" for n in range(5_000)]}
    )
    pq.write_table(rows, tmp_path / "x.parquet")
    session.table("bx", tmp_path / "x.parquet")
    session.sql("CREATE OR REPLACE TEMP VIEW by AS SELECT 1L AS id")
    whole = (tmp_path / "x.parquet").stat().st_size
    for select, read in (("COUNT(*)", 1), ("SUM(bx.v)", 2)):
        run = session._run_of(
            *asked(session, f"SELECT APPROXIMATE {select} FROM bx JOIN by ON bx.id = by.id")
        )
        one, other = Footers(lambda: session.spark, session.tables, run.typed).nbytes
        assert one == pytest.approx(whole * 8 * (1 + read) / (8 + 8 + 8 + 20))
        assert other is None, "a view has no files"


def asked(session, text):
    statement = parse_statement(text)
    return statement, session._resolved(statement)


def test_sizes_without_a_look_at_filters(monkeypatch):
    found = footers(monkeypatch, (5e7, None, 3.0))
    assert [s.tuples for s in found.bare_sizes] == [5e7, 0.0, 3.0]
    assert footers(monkeypatch, (5e7, 1.0, 3.0)).large
    assert not footers(monkeypatch, (5.0, 1.0, 3.0)).large
    assert not found.large, "of one table nothing is known"


@pytest.mark.parametrize(
    ("tuples", "distinct", "cheap"),
    [
        ((1e6, 5e5), 5e5, True),
        ((1e7, 5e6), 5e6, False),
        ((1e6, 1e6), 100.0, False),
        ((1e6, 5e5), math.inf, False),
        ((1e6, None), 5e5, False),
    ],
)
def test_distinct_values_are_counted_exactly_where_that_costs_less_than_to_look_at_the_tables(
    monkeypatch, tuples, distinct, cheap
):
    found = footers(monkeypatch, tuples, distinct, "COUNT(DISTINCT x.id) FROM x JOIN y ON x.id = y.id")
    assert found.exact_distinct_is_cheap is cheap


def test_keys_of_small_tables_are_counted_where_footers_do_not_tell(session, tmp_path):
    """A table that has each key once puts out no more tuples than its partner has."""
    for name, keys in {"fn": ["a", "b"] * 500, "fs": ["a", "b", "c"]}.items():
        pq.write_table(pa.table({"id": keys}), tmp_path / f"{name}.parquet")
        session.table(name, tmp_path / f"{name}.parquet")
    run = session._run_of(*asked(session, "SELECT APPROXIMATE COUNT(*) FROM fn JOIN fs ON fn.id = fs.id"))
    assert Footers(lambda: session.spark, session.tables, run.typed).outputs == (1000 * 3 / 2,)


def test_keys_of_large_tables_that_footers_do_not_tell_are_told_by_some_tuples(
    session, tmp_path, monkeypatch
):
    """The join is taken to put out rather too much: of keys that are each there once few are seen."""
    monkeypatch.setattr(footers_module, "MOST_READ", 10)
    for name in ("fn", "fs"):
        pq.write_table(pa.table({"id": [f"k{i}" for i in range(40_000)]}), tmp_path / f"{name}.parquet")
        session.table(name, tmp_path / f"{name}.parquet")
    run = session._run_of(*asked(session, "SELECT APPROXIMATE COUNT(*) FROM fn JOIN fs ON fn.id = fs.id"))
    found = Footers(lambda: session.spark, session.tables, run.typed)
    assert found.values == math.inf
    assert 40_000 <= found.outputs[0] <= 2 * 40_000
    assert found.exact_seconds < found.looking_seconds


@pytest.mark.parametrize(
    ("filters", "large"),
    [
        ("x.id IN (SELECT id FROM fl)", True),
        ("x.id IN (SELECT id FROM fl WHERE id > 3)", True),
        ("x.id IN (SELECT id FROM fx)", False),
        ("x.id = 1 OR x.id IN (2, 3)", False),
    ],
)
def test_a_filter_that_reads_a_large_table_is_known_by_its_text(
    session, tmp_path, monkeypatch, filters, large
):
    monkeypatch.setattr(first_sample, "LARGE", 50)
    for name, tuples in {"fx": 10, "fl": 60}.items():
        pq.write_table(pa.table({"id": range(tuples)}), tmp_path / f"{name}.parquet")
        session.table(name, tmp_path / f"{name}.parquet")
    text = f"SELECT APPROXIMATE COUNT(*) FROM fx AS x JOIN fx AS y ON x.id = y.id WHERE {filters}"
    found = Footers(lambda: session.spark, session.tables, session._resolved(parse_statement(text)))
    assert found.filters_look_at_large is large


def test_where_no_job_may_run_filters_that_read_other_tables_are_not_looked_at(
    session, tmp_path, monkeypatch
):
    for name, tuples in {"fx": 10, "fl": 60}.items():
        pq.write_table(pa.table({"id": range(tuples)}), tmp_path / f"{name}.parquet")
        session.table(name, tmp_path / f"{name}.parquet")
    looked_at = []
    monkeypatch.setattr(
        footers_module.Probe, "share", lambda _, condition: looked_at.append(condition) or 0.5
    )

    def shares(where, jobs):
        text = f"SELECT APPROXIMATE COUNT(*) FROM fx AS x JOIN fx AS y ON x.id = y.id WHERE {where}"
        found = Footers(lambda: session.spark, session.tables, session._resolved(parse_statement(text)))
        assert found.together is None, "nothing is evaluated in the driver here"
        return sorted(s.share for s in found.sizes_by(jobs=jobs))

    both = "x.id IN (SELECT id FROM fl) AND y.id > 3"
    assert shares(both, jobs=False) == [0.5, 1.0]
    assert len(looked_at) == 1
    assert shares(both, jobs=True) == [0.5, 0.5]
    assert shares("y.id > 3", jobs=False) == [0.5, 1.0]


def test_files_in_the_order_of_their_keys_tell_how_filters_go_together_and_which_keys_are_heavy(
    session, tmp_path, monkeypatch
):
    random = np.random.default_rng(4)
    day, k = random.integers(0, 1000, 20_000), np.repeat(np.arange(20_000), 3)
    columns = {
        "fo": {"k": np.arange(20_000), "day": day},
        "fl": {"k": k, "sent": day[k] + random.integers(1, 60, k.size)},
    }
    for name, own in columns.items():
        pq.write_table(pa.table(own), tmp_path / f"{name}.parquet", row_group_size=2_000)
        session.table(name, tmp_path / f"{name}.parquet")

    def of(where):
        text = f"SELECT APPROXIMATE COUNT(*) FROM fl JOIN fo ON fl.k = fo.k WHERE {where}"
        query = with_key_types(session._resolved(parse_statement(text)), session.tables, True)
        return Footers(lambda: session.spark, session.tables, query, session._evaluated)

    assert of("fl.sent > 500 AND fo.day <= 500").together is None, (
        "no longer than the look does the exact run take"
    )
    monkeypatch.setattr(footers_module, "LEAST_SECONDS", 0.0)
    apart = of("fl.sent > 500 AND fo.day <= 500")
    after, before = columns["fl"]["sent"] > 500, day <= 500
    expected = np.mean(after & before[k]) / (after.mean() * before.mean())
    assert apart.together.times == pytest.approx(expected, rel=0.25)
    assert apart.together.times < 0.2
    assert apart.countable == {0: 6.0, 1: 1.0}
    assert apart.key_counts(0).distinct == apart.key_counts(1).distinct == 20_000
    assert apart.key_counts(0).most() == 3.0, "more keys have as many than are listed"
    monkeypatch.setattr(footers_module, "MOST_COUNTED_SOON", 50_000.0)
    assert apart.key_counts(0) is None, "no more than are soon looked through"
    assert apart.key_counts(1) is not None
    assert of("fl.sent > 500").together is None, "of one filter the share tells"
    # Read through an expression, or in no order, keys are not counted.
    session.spark.table("parquet.`" + str(tmp_path / "fl.parquet") + "`").selectExpr(
        "k div 2 AS k", "sent"
    ).createOrReplaceTempView("fl_view")
    text = "SELECT APPROXIMATE COUNT(*) FROM fl_view JOIN fo ON fl_view.k = fo.k"
    query = with_key_types(session._resolved(parse_statement(text)), session.tables, True)
    read = Footers(lambda: session.spark, session.tables, query, session._evaluated)
    assert 0 not in read.countable
    assert read.key_counts(0) is None


def test_of_keys_that_are_there_often_it_is_looked_what_the_filter_keeps(session, tmp_path):
    """Not of a table in the order of its keys, without a filter, with one that reads other tables, or without heavy keys."""
    rng = np.random.default_rng(6)
    heavy = rng.permutation(np.r_[np.arange(4_000), np.full(1_000, 7)])
    for name, k in (("kh", heavy), ("ko", np.sort(heavy)), ("ku", rng.permutation(5_000))):
        pq.write_table(pa.table({"k": k, "y": (k != 7).astype(int)}), tmp_path / f"{name}.parquet")
        session.table(name, tmp_path / f"{name}.parquet")

    def passing(table, condition):
        text = f"SELECT APPROXIMATE COUNT(*) FROM {table} JOIN kh AS other ON {table}.k = other.k{condition}"
        resolved = session._resolved(parse_statement(text))
        seen = Footers(lambda: session.spark, session.tables, resolved, session._evaluated).keys_seen
        assert seen[1, 0].passing is None, "it has no filter"
        return seen[0, 0]

    found = passing("kh", " WHERE kh.y = 1")
    assert found.counts.max() == found.counts[7] == 1_001
    assert (found.passing.sum(), found.passing[7]) == (3_999, 0)
    for table, condition in (
        ("kh", ""),
        ("kh", " WHERE kh.y IN (SELECT y FROM ku)"),
        ("ko", " WHERE ko.y = 1"),
        ("ku", " WHERE ku.y = 1"),
    ):
        assert passing(table, condition).passing is None, (table, condition)
