"""Errors of the system, of Python and of Spark that nothing has explained, as errors of ours."""

from __future__ import annotations

import errno
import sys

from ..errors import EnvironmentFault, SkimqlError


def as_ours(fault: Exception, sql: str) -> SkimqlError | None:
    """An error of Spark's that nothing has explained, or the end of its JVM, as one of ours; None of others."""
    if _is_allocation(fault):
        return EnvironmentFault(
            f"this process has no more memory: {fault}" if str(fault) else "this process has no more memory",
            "SKIMQL_OUT_OF_MEMORY",
            sql,
            hint="a smaller SIZE, or fewer rows and buckets: OPTIONS (...); a larger limit of the process (ulimit -v)",
        )
    if isinstance(fault, SkimqlError) or "pyspark" not in sys.modules:
        return None
    from .spark.session import explained

    return explained(fault, sql)


def _is_allocation(fault: BaseException | None) -> bool:
    """Whether the system has refused this process memory, for an array, a thread, a module that is first needed now.

    Modules tell of the reason for which they cannot be imported in words of their own, that of the system behind them.
    """
    if fault is None:
        return False
    refused = isinstance(fault, MemoryError) or (isinstance(fault, OSError) and fault.errno == errno.ENOMEM)
    if isinstance(fault, (ImportError, RuntimeError)):
        refused = any(words in str(fault) for words in ("failed to map segment", "can't start new thread"))
    return refused or (
        isinstance(fault, ImportError) and _is_allocation(fault.__cause__ or fault.__context__)
    )
