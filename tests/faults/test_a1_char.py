"""CHAR(n) is compared as Spark compares it: padded beside CHAR and literals, with its own blanks beside other text."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from support.exact import exact_answers

from skimql import Answer, Session, SkimqlError

DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
JOINED = "FROM ca a JOIN cb b ON a.c = b.c"
QUERIES = [
    "COUNT(*), SUM(a.v) {J}",
    "COUNT(*), SUM(a.v) FROM ca a JOIN cb b USING (c)",
    "COUNT(*), SUM(a.v) FROM ca a JOIN st b ON a.c = b.s",
    "COUNT(*) FROM ca a JOIN cb b ON a.c = b.c JOIN cd d ON b.c = d.c AND a.c = d.c",
    "COUNT(*) FROM ca a JOIN cb b ON a.c = b.c JOIN st d ON b.c = d.s",
    "COUNT(*) {J} WHERE a.c >= 'ab ' AND a.c <= 'ab'",
    "COUNT(*) FROM ca a, cb b WHERE a.c = 'ab' AND b.c = 'ab   '",
    "COUNT(*) FROM ca a JOIN st b ON a.c = b.s WHERE a.c = 'ab'",
    "a.c, COUNT(*) AS n {J} GROUP BY a.c HAVING a.c = 'ab' ORDER BY a.c",
    "d.c, d.d, COUNT(*) AS n FROM ca a JOIN cd d ON a.c = d.c GROUP BY d.c, d.d HAVING d.c = d.d",
    "COUNT(DISTINCT a.c) {J}",
    "COUNT(*) FROM (SELECT c AS x FROM ca) a JOIN (SELECT c AS y FROM cb WHERE c = 'ab') b ON a.x = b.y",
    "COUNT(*) FROM (SELECT c || '' AS x FROM ca) a JOIN cb b ON a.x = b.c",
    "COUNT(DISTINCT c) FROM (SELECT c FROM ca INTERSECT SELECT c FROM cb)",
]


@pytest.fixture
def chars(spark, session):
    """Tables with columns of CHAR, padded as Spark reads them."""

    def table(values):
        # What stands in the text is read without a job, where rows of Python's go through a worker in every query.
        return spark.sql(f"SELECT * FROM VALUES {values}")

    plain = table("('ab', 1), ('ab ', 5), ('ab   ', 7), ('xyz', 2) AS t(s, v)")
    session.table("st", plain)
    session.table("vc", plain.select(F.col("s").alias("s", metadata={DECLARED: "varchar(9)"}), "v"))
    pairs = table("('ab', 1), ('xyz', 2) AS t(c, v)")
    for name, length in (("ca", 3), ("cb", 5)):
        padded = F.rpad("c", length, " ").alias("c", metadata={DECLARED: f"char({length})"})
        session.table(name, pairs.select(padded, "v"))
    both = table("('ab', 'ab'), ('xyz', 'q'), (NULL, NULL) AS t(c, d)")
    columns = [F.rpad(c, n, " ").alias(c, metadata={DECLARED: f"char({n})"}) for c, n in (("c", 3), ("d", 4))]
    session.table("cd", both.select(*columns))
    return session


def rows(session, sql):
    return [
        tuple(getattr(c, "value", c) for c in row) for row in session.sql(f"SELECT APPROXIMATE {sql}").rows
    ]


@pytest.mark.spark
def test_char_joins_filters_and_groups_as_in_spark(chars):
    texts = [query.format(J=JOINED) for query in QUERIES]
    exact = exact_answers(chars, texts)
    for sql in texts:
        assert rows(chars, sql) == exact[sql], sql


@pytest.mark.spark
def test_char_is_text_where_spark_takes_it_for_text(spark, chars):
    frames = {name: chars.sql(f"SELECT * FROM {name}") for name in ("ca", "cb")}
    spark.conf.set("spark.sql.legacy.charVarcharAsString", "true")
    try:
        session = Session(spark, error=None)
        for name in ("ca", "cb"):
            session.table(name, frames[name])
        assert rows(session, "COUNT(*) FROM ca a JOIN cb b ON a.c = b.c") == [(0,)]
        assert session.sql("SELECT COUNT(*) FROM ca a JOIN cb b ON a.c = b.c").first()[0] == 0
    finally:
        spark.conf.unset("spark.sql.legacy.charVarcharAsString")


@pytest.mark.spark
def test_kept_sketches_row_estimates_and_guards_of_char(chars):
    assert chars.sql("ESTIMATE ROWS FOR SELECT * FROM ca JOIN cb ON ca.c = cb.c").value == 2
    with pytest.raises(SkimqlError, match="more than 1"):
        chars.guard(chars.sql("SELECT * FROM ca"), chars.sql("SELECT * FROM cb"), on="c", most=1)
    for table, key in (("ca", "c"), ("cb", "c"), ("st", "s CLASS c")):
        chars.sql(f"CREATE SKETCH k{table} ON {table} ({key})")
    answer = chars.sql("SELECT APPROXIMATE COUNT(*) FROM ca JOIN cb ON ca.c = cb.c")
    assert isinstance(answer, Answer)
    assert answer.value == 2
    assert "kept sketches kca" in answer.notes[0]
    # Compared with text CHAR keeps its blanks: what is kept for other CHAR does not serve.
    assert chars.sql("SELECT APPROXIMATE COUNT(*) FROM ca JOIN st ON ca.c = st.s").value == 2
