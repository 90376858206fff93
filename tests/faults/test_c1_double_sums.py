"""SUM and AVG of DOUBLE where the weights of a Spark partition, or of all, are zero or NULL."""

from __future__ import annotations

import numpy as np
import pytest

from skimql.sketches.joins.exact_map import ExactMap, group_tuples


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_sums_of_no_tuples_keep_the_type_of_their_weights(dtype):
    keys = np.array([1, 2], dtype=np.int64)
    some = ExactMap(keys[:, None], np.array([1, -1], dtype=dtype))
    nothing = ExactMap.empty(1, dtype)
    groups = group_tuples([keys], 2)
    before, after = groups.split(2)
    assert before.sums(some.weights).dtype == after.sums(nothing.weights).dtype == np.dtype(dtype)
    for one, other in ((nothing, nothing), (some, nothing), (nothing, some)):
        assert one.plus(other).weights.dtype == np.dtype(dtype)
    assert some.plus(some, -1).weights.dtype == np.dtype(dtype)


@pytest.mark.spark
def test_sums_of_weights_that_are_zero_null_or_cancel_are_zero(spark, session):
    rows = (
        "VALUES (1, 0.0D, CAST(0 AS FLOAT), CAST(0 AS DECIMAL(30, 2)), '0', 0, 1.5D), "
        "(1, NULL, NULL, NULL, NULL, 0, -1.5D)"
    )
    session.table("a", spark.sql(f"SELECT * FROM {rows} AS t(k, f, g, d, s, i, c)"))
    session.table("b", spark.sql("SELECT * FROM VALUES (1, 10), (2, 20) AS t(k, y)"))
    columns = ("a.f", "a.g", "a.d", "a.s", "a.i / 2", "a.c")
    both = ", ".join(f"SUM({c}), AVG({c})" for c in columns)
    answer = session.sql(f"SELECT APPROXIMATE {both} FROM a JOIN b ON a.k = b.k")
    assert [c.value for c in answer.rows[0]] == [0.0] * 12
    grouped = session.sql(
        "SELECT APPROXIMATE b.y, SUM(a.f), AVG(a.s) FROM a JOIN b ON a.k = b.k GROUP BY b.y"
    )
    assert [c.value for c in grouped.rows[0][1:]] == [0.0] * 2


@pytest.mark.spark
def test_kept_sums_of_zeros_can_be_made_appended_to_and_read(spark, session):
    session.table("a", spark.sql("SELECT * FROM VALUES (1, 0.0D), (2, NULL) AS t(k, f)"))
    session.table("more", spark.sql("SELECT * FROM VALUES (1, 0.0D), (2, 2.5D) AS t(k, f)"))
    session.sql("CREATE SKETCH sa ON a (k) FOR SUM(f)")
    sums = "SELECT APPROXIMATE SUM(a.f), COUNT(a.f) FROM a JOIN more ON a.k = more.k"
    assert [c.value for c in session.sql(sums).rows[0]] == [0.0, 1]
    session.sql("APPEND SKETCH sa FROM more")
    session.table("b", spark.sql("SELECT * FROM VALUES (1), (2) AS t(k)"))
    kept = session.sql("SELECT APPROXIMATE SUM(a.f), COUNT(a.f) FROM a JOIN b ON a.k = b.k")
    assert [c.value for c in kept.rows[0]] == [2.5, 3]


@pytest.mark.spark
def test_a_sum_of_doubles_that_cancel_out_has_an_interval_and_others_have_none(
    spark, session, as_users_have_it
):
    """Spark's own answer depends on the order of the data; that of others by less than 1e-9 of them."""
    wild = "1 AS k, CASE id WHEN 0 THEN 1e17 WHEN 1 THEN -1e17 ELSE 1.0D END AS x, id * 0.1D - 20 AS y"
    session.table("d", spark.range(2000).selectExpr(*wild.split(", ")))
    session.table("o", spark.sql("SELECT 1 AS k"))
    for joined in ("FROM d", "FROM d JOIN o ON d.k = o.k"):
        answer = session.sql(f"SELECT APPROXIMATE SUM(x), AVG(x), SUM(y), AVG(y) {joined}")
        exact = session.sql(f"SELECT SUM(x), AVG(x), SUM(y), AVG(y) {joined}").first()
        wide, mean, total, average = answer.rows[0]
        for cell, value in ((wide, exact[0]), (mean, exact[1])):
            assert cell.low < value < cell.high
            assert not cell.exact
        assert "cancel" in answer.notes[0]
        for cell, value in ((total, exact[2]), (average, exact[3])):
            assert cell.exact
            assert cell.value == pytest.approx(value, rel=1e-9)


@pytest.mark.spark
def test_what_cancels_out_at_the_keys_that_join_is_not_called_exact(spark, session, as_users_have_it):
    """In this order the 5 is lost, in another it is the sum; another key keeps the mass of the map from vanishing."""
    rows = [(1, 5.0), (1, 1e17), (1, -1e17), (2, 3e17)]
    session.table("a", spark.createDataFrame(rows, "k int, f double").coalesce(1))
    session.table("b", spark.createDataFrame([(1,)], "k int"))
    answer = session.sql("SELECT APPROXIMATE SUM(a.f), AVG(a.f), COUNT(*) FROM a JOIN b ON a.k = b.k")
    total, mean, count = answer.rows[0]
    assert total.low <= 5.0 <= total.high
    assert mean.low <= 5.0 / 3 <= mean.high
    assert not total.exact
    assert count.exact
