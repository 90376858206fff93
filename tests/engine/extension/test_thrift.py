"""Spark's Thrift server with our statements, asked by the JDBC driver that Spark brings."""

from __future__ import annotations

import socket

import pytest
from py4j.protocol import Py4JJavaError
from support.extension import with_jar

from skimql import EnvironmentFault
from skimql.engine.extension.thrift import serving


def asked(connection, text):
    """Names and rows, as texts."""
    statement = connection.createStatement()
    if not statement.execute(text):
        return None
    rows, about = statement.getResultSet(), statement.getResultSet().getMetaData()
    numbers = range(1, about.getColumnCount() + 1)
    found = []
    while rows.next():
        found.append(tuple(rows.getString(n) for n in numbers))
    return [about.getColumnLabel(n) for n in numbers], found


def test_each_connection_asks_in_a_session_of_its_own(spark, tmp_path):
    spark.sql("SELECT id AS k FROM range(3)").write.parquet(str(tmp_path / "t"))
    query = "SELECT APPROXIMATE COUNT(*) AS n FROM jt a JOIN jt b ON a.k = b.k"
    drivers = spark._jvm.java.sql.DriverManager
    with with_jar(tmp_path), serving("127.0.0.1", 0, tables={"jt": str(tmp_path / "t")}) as port:
        url = f"jdbc:hive2://127.0.0.1:{port}/"
        one, other = (drivers.getConnection(url, "u", "") for _ in range(2))
        asked(one, "SET skimql.bounds = none")
        assert asked(one, query) == (["n"], [("3",)])
        names, rows = asked(other, query)
        assert names[:5] == ["n", "n_low", "n_high", "confidence", "certified"]
        assert rows[0][:2] == ("3", "3.0")
        with pytest.raises(Py4JJavaError, match="SKIMQL_NON_EQUI_JOIN"):
            asked(one, query.replace("=", "<"))
        assert asked(one, "SELECT 1 AS one") == (["one"], [("1",)])
        # The other is open when the server stops.
        one.close()
    spark.sql("DROP TABLE jt")


def test_a_port_that_is_taken_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EnvironmentFault) as fault, serving("127.0.0.1", taken.getsockname()[1]):
            pass
    assert fault.value.code == "SKIMQL_PORT"
