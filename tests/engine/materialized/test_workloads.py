"""W_Q of CREATE SKETCHES comes from the gathered statistics: the right columns, behind the right filters."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.standing_seeds import planned

from skimql.engine.execution import build as scanning

pytestmark = pytest.mark.spark

CREATE = "CREATE SKETCHES w FOR QUERIES ({}) SIZE 256 KB MINIMIZE AVERAGE ERROR"
HARD = "SELECT COUNT(*) FROM p JOIN q ON p.a = q.a"
EASY = "SELECT COUNT(*) FROM p JOIN q ON p.b = q.b"


@pytest.fixture
def tables(session):
    """a: 40 keys on each side of which 2 match; b: 4 keys, all match; both NULL here and there."""
    n = np.arange(2_000)
    holes = pa.array(n % 40, mask=n % 11 == 0)
    session.table("p", session.spark.createDataFrame(pa.table({"a": holes, "b": n % 4, "v": n % 5})))
    session.table(
        "q",
        session.spark.createDataFrame(pa.table({"a": n % 40 + 38, "b": pa.array(n % 4, mask=n % 7 == 0)})),
    )
    return session


def relative_variance(f, g):
    """Var / E^2 of an atomic sketch, from frequencies."""
    f, g = f.astype(float), g.astype(float)
    join = f @ g
    return ((f @ f) * (g @ g) + join**2 - 2 * ((f * g) @ (f * g))) / join**2


def test_a_query_of_larger_variance_gets_more_space_and_the_error_is_as_computed(tables):
    n = np.arange(2_000)
    declared = planned(tables, CREATE.format(f"{HARD}; {EASY}"))
    a = np.bincount((n % 40)[n % 11 != 0], minlength=80), np.bincount(n % 40 + 38, minlength=80)
    b = np.bincount(n % 4, minlength=4), np.bincount((n % 4)[n % 7 != 0], minlength=4)
    variances = np.array([relative_variance(*a), relative_variance(*b)])
    assert variances[0] > 100 * variances[1]
    final = declared.workload.stages[-1].after
    words = [declared.workload.buckets * declared.workload.vertices[v].rows[0] for v in (0, 2)]
    assert words[0] > 3 * words[1]
    expected = np.sqrt(np.pi / 2 * variances / words)
    assert np.allclose(final.relative_errors, expected, rtol=0.02)


def test_a_filter_changes_the_weight_of_its_query(tables):
    n = np.arange(2_000)
    declared = planned(tables, CREATE.format(f"{EASY} WHERE p.v = 0 AND p.a < 2"))
    kept = (n % 5 == 0) & (n % 40 < 2) & (n % 11 != 0)
    f, g = np.bincount((n % 4)[kept], minlength=4), np.bincount((n % 4)[n % 7 != 0], minlength=4)
    (error,) = declared.workload.stages[-1].after.relative_errors
    words = declared.workload.buckets * declared.workload.vertices[0].rows[0]
    assert np.isclose(error, np.sqrt(np.pi / 2 * relative_variance(f, g) / words), rtol=0.02)


def test_its_sketches_answer_other_questions_and_say_so(tables):
    sums = "SELECT SUM(p.v) FROM p JOIN q ON p.b = q.b"
    tables.sql(CREATE.format(f"{EASY}; {sums}; SELECT COUNT(*) FROM p JOIN q ON p.b = q.b WHERE p.v = 1"))
    both = "SELECT {} COUNT(*), AVG(p.v) FROM p JOIN q ON p.b = q.b"
    answer = tables.sql(both.format("APPROXIMATE"))
    for cell, truth in zip(answer.rows[0], tables.sql(f"EXACT {both.format('')}").rows[0], strict=True):
        assert float(cell.value) == pytest.approx(float(getattr(truth, "value", truth)))
    itself = tables.sql("SELECT APPROXIMATE COUNT(*) FROM p x JOIN p y ON x.b = y.b")
    assert itself.value == 4 * 500**2
    assert all("of the sketches w" in a.notes[0] for a in (answer, itself))


def test_a_file_that_changes_while_it_is_read_has_changed_since(session, tmp_path, monkeypatch):
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"k": [1, 2]}), path)
    session.table("r", path)
    whole = scanning.build

    def changing(*given):
        found = whole(*given)
        pq.write_table(pa.table({"k": [1, 2, 3]}), path)
        return found

    sql = "SELECT COUNT(*) FROM r JOIN r AS s ON r.k = s.k"
    with monkeypatch.context() as patched:
        patched.setattr(scanning, "build", changing)
        session.sql(CREATE.format(sql))
    answer = session.sql(sql.replace("SELECT", "SELECT APPROXIMATE", 1))
    assert (answer.value, answer.rows[0][0].certified) == (2, False)
    assert any("1 changed file" in n for n in answer.notes)
