"""Errors of others as errors of ours."""

import errno

import pytest

from skimql import EnvironmentFault
from skimql.engine.faults import as_ours


@pytest.mark.parametrize(
    "fault",
    [
        MemoryError(),
        MemoryError("Unable to allocate 4. GiB"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("/lib/x.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_this_process_without_memory_is_told_without_a_traceback(fault):
    told = as_ours(fault, "SELECT 1")
    assert isinstance(told, EnvironmentFault)
    assert told.code == "SKIMQL_OUT_OF_MEMORY"
    assert str(fault) in told.message
    assert "SIZE" in told.hint


def test_a_module_that_hides_why_it_cannot_be_imported_is_asked_for_the_reason_behind():
    hidden = ImportError("The install you are using seems to be broken")
    assert as_ours(hidden, "SELECT 1") is None
    hidden.__cause__ = ImportError("/lib/x.so: failed to map segment from shared object")
    assert as_ours(hidden, "SELECT 1").code == "SKIMQL_OUT_OF_MEMORY"


@pytest.mark.parametrize(
    "fault", [ValueError("x"), OSError(errno.ENOENT, "no such file"), ImportError("no y")]
)
def test_what_is_no_ones_fault_but_the_programs_stays_as_it_is(fault):
    assert as_ours(fault, "SELECT 1") is None


def test_what_is_ours_already_stays_as_it_is():
    assert as_ours(EnvironmentFault("no room", "SKIMQL_SPARK_STOPPED"), "SELECT 1") is None
