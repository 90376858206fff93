"""What Spark's complaint about a scan means: which table, which keys, and what to install or write instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...errors import DataError, EnvironmentFault, SkimqlError
from ...optimizer.plan import Attribute
from ..sources.weights import LEAVES_64_BITS
from ..spark.session import SPARK_FAULTS, first_line, out_of_room
from ..synopses import NOT_FINITE, not_finite


@contextmanager
def explained(sql: str, table: str, attributes: Sequence[Attribute]) -> Iterator[None]:
    """Faults of a scan of a table within, as errors of ours; `attributes` are its join keys."""
    try:
        yield
    except (*SPARK_FAULTS, OverflowError, ValueError) as fault:
        raise out_of_room(fault, sql) or explanation(fault, sql, table, attributes) from fault


def explanation(fault: Exception, sql: str, table: str, attributes: Sequence[Attribute]) -> SkimqlError:
    """Spark's complaint with the table, the keys, and what to install where a worker lacks a library."""
    text = str(fault)
    if "ModuleNotFoundError" in text:
        missing = text.split("No module named", 1)[-1].strip().splitlines()[0].strip(" '\"")
        return EnvironmentFault(
            f"a Spark worker's Python lacks {missing}",
            "SKIMQL_WORKER_PYTHON",
            hint="start Spark with PYSPARK_PYTHON set to the Python that runs SkimQL; see skimql doctor",
        )
    if isinstance(fault, OverflowError) or "\nOverflowError: " in text or LEAVES_64_BITS in text:
        return DataError(
            f"a sum over {table} leaves 64 bits",
            "SKIMQL_OVERFLOW",
            sql,
            hint="SUM(CAST(... AS DOUBLE))",
        )
    # An error that our own code raised in a worker stands on a line of its own at the end of a traceback.
    own = [x.split(": ", 1)[1] for x in text.splitlines() if x.startswith("ValueError: ")]
    said = str(fault) if isinstance(fault, ValueError) else own[-1] if own else first_line(fault)
    if NOT_FINITE in said:
        return not_finite(sql, table, said)
    keys = {f"{key} as {kind}" for a in attributes for key, kind in zip(a.keys, a.key_types, strict=True)}
    compared = f"; its join keys: {', '.join(sorted(keys))}" if keys else ""
    return DataError(f"scan of {table} failed: {said}{compared}", "SKIMQL_SCAN_FAILED", sql)
