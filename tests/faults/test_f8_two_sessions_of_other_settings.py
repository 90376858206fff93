"""Two sessions of other settings: each answers as its own Spark session does; a DataFrame keeps what it means."""

from __future__ import annotations

import pytest

from skimql import DataError, Session, SkimqlError


@pytest.fixture
def other(spark):
    """A Spark session beside the suite's, lenient and in New York."""
    made = spark.newSession()
    made.conf.set("spark.sql.ansi.enabled", "false")
    made.conf.set("spark.sql.session.timeZone", "America/New_York")
    return made


TEXTS = "SELECT * FROM VALUES ('1', '2024-01-01 03:00:00'), ('x', '2024-01-01 12:00:00') AS v(k, at)"
QUERY = """SELECT APPROXIMATE COUNT(*) FROM t JOIN n ON CAST(t.k AS INT) = n.k
           WHERE hour(to_timestamp('2024-01-01 03:00:00Z')) = {hour}"""


def test_each_session_reads_texts_by_its_own_settings(spark, other):
    strict, lenient = Session(spark, error=None), Session(other, error=None)
    for session, home in ((strict, spark), (lenient, other)):
        session.table("t", home.sql(TEXTS))
        session.table("n", home.sql("SELECT 1 AS k"))
    with pytest.raises(SkimqlError, match=r"CAST_INVALID_INPUT|malformed|cast to"):
        strict.sql(QUERY.format(hour=3))
    assert lenient.sql(QUERY.format(hour=22)).value == 1
    assert lenient.sql(QUERY.format(hour=3)).value == 0
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_a_dataframe_of_another_session_keeps_its_meaning(spark, other, tmp_path):
    session = Session(spark, error=None)
    session.table("n", spark.sql("SELECT 1 AS k"))
    session.table(
        "t", other.sql(f"SELECT CAST(k AS INT) AS k, hour(CAST(at AS TIMESTAMP)) AS h FROM ({TEXTS})")
    )
    assert session.sql("SELECT APPROXIMATE COUNT(*) FROM t JOIN n ON t.k = n.k WHERE t.h = 3").value == 1
    assert session.sql("EXACT SELECT COUNT(*) FROM t WHERE k IS NULL").value == 1
    # What a reader looks up when it runs cannot be kept: such a DataFrame is for a session on its own Spark session.
    (tmp_path / "t.csv").write_text("k,at\n1,2024-01-01 03:00:00\n")
    read = other.read.csv(str(tmp_path / "t.csv"), header=True, schema="k INT, at TIMESTAMP")
    with pytest.raises(DataError) as told:
        session.table("c", read)
    assert told.value.code == "SKIMQL_OTHER_SESSION"
    assert "spark.sql.session.timeZone" in str(told.value)
    theirs = Session(read.sparkSession)
    theirs.table("c", read)
    assert theirs.sql("EXACT SELECT COUNT(*) FROM c WHERE at = TIMESTAMP '2024-01-01 08:00:00Z'").value == 1
    other.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    with pytest.raises(DataError, match="timeParserPolicy"):
        session.table("c", other.sql("SELECT 1 AS k"))
