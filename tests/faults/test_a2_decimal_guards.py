"""A guard (FILTER, CASE, another part's presence) leaves the value that it guards as it is, of whatever type."""

from __future__ import annotations

import pytest

@pytest.mark.spark
def test_decimals_behind_guards_keep_all_their_digits(spark, session):
    values = "CAST(0.00000016 AS DECIMAL(38, 18)), CAST(1e-10 AS DECIMAL(38, 18)), CAST(0.125 AS DECIMAL(28, 10))"
    session.table("f", spark.sql(f"SELECT * FROM VALUES (1, {values}), (1, {values}) AS t(k, x, y, z)"))
    session.table("b", spark.sql("SELECT * FROM VALUES (1, 10), (2, 20) AS t(k, n)"))
    expected = {
        "SUM(a.x) FILTER (WHERE a.k > 0)": 3.2e-7,
        "SUM(a.y) FILTER (WHERE a.k > 0)": 2e-10,
        "SUM(a.z) FILTER (WHERE b.n = 10)": 0.25,
        "AVG(a.x) FILTER (WHERE a.k > 0)": 1.6e-7,
        "SUM(CASE WHEN a.k > 0 THEN a.x ELSE b.n END)": 3.2e-7,
        "SUM(CASE WHEN a.k > 0 THEN a.y WHEN a.k > 5 THEN b.n END) FILTER (WHERE a.k < 3)": 2e-10,
        "SUM(a.x - b.n) FILTER (WHERE a.k > 0)": 3.2e-7 - 20,
        "SUM(a.x + b.n)": 3.2e-7 + 20,
    }
    for options in ("", " OPTIONS (sparse = false)"):
        sql = f"SELECT APPROXIMATE {', '.join(expected)} FROM f a JOIN b ON a.k = b.k{options}"
        got = [c.value for c in session.sql(sql).rows[0]]
        assert got == pytest.approx(list(expected.values()), rel=1e-12), options
