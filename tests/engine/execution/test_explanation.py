"""What a failing scan says: the table, its keys, what Spark said, and what to do."""

from __future__ import annotations

import pytest
from support.tables import register

from skimql import DataError, EnvironmentFault
from skimql.engine.execution.explanation import explained, explanation
from skimql.engine.sources.weights import LEAVES_64_BITS
from skimql.optimizer.plan import Attribute

KEY = Attribute(("`k`",), ("bigint",), "k")


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (
            ValueError("weights must be finite"),
            "SKIMQL_SCAN_FAILED",
            "scan of t failed: weights must be finite",
        ),
        (ValueError("x"), "SKIMQL_SCAN_FAILED", "its join keys: `k` as bigint"),
        (OverflowError("int64"), "SKIMQL_OVERFLOW", "a sum over t leaves 64 bits"),
        (ValueError(f"no: {LEAVES_64_BITS}"), "SKIMQL_OVERFLOW", "leaves 64 bits"),
        (ValueError("ModuleNotFoundError: No module named 'numpy'"), "SKIMQL_WORKER_PYTHON", "lacks numpy"),
    ],
)
def test_a_fault_is_told_with_its_table(fault, code, said):
    found = explanation(fault, "SELECT 1", "t", [KEY])
    assert (found.code, isinstance(found, DataError | EnvironmentFault)) == (code, True)
    assert said in found.message


def test_faults_that_are_ours_already_stay_as_they_are():
    own = DataError("no", "SKIMQL_OVERFLOW")
    with pytest.raises(DataError) as found, explained("SELECT 1", "t", [KEY]):
        raise own
    assert found.value is own


def test_a_value_that_fails_in_the_scan_of_a_sample_is_told_as_in_any_scan(session):
    register(session, r=("k INT, s STRING", [(1, "1"), (2, "")]), q=("k INT", [(1,), (2,)]))
    asked = "COUNT(*) FROM r JOIN q ON r.k = q.k WHERE r.s = 1"
    for method in ("key_sample", "two_level"):
        with pytest.raises(DataError, match=r"scan of r failed: .*cannot be cast") as fault:
            session.sql(f"SELECT APPROXIMATE {asked} USING {method}")
        assert (fault.value.code, "`k`" in fault.value.message) == ("SKIMQL_SCAN_FAILED", True)
