"""Whether what is Spark's stays Spark's: every kind of its statements, with the extension and without.

The statements of ``tests/surfaces/ordinary.sql``, one a line (a ¶ is a line break, what follows a tab are arguments as
JSON), with our words as names, parameters, scripts and mistakes among them. `python -m benchmarks.surfaces` runs all.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "tests" / "surfaces" / "ordinary.sql"
VIEW = "SELECT 1 AS k, 2 AS approx, 3 AS sketch"
# Of every plan, run or new object.
_VARYING = re.compile(
    r"(?<=^Sample 0.0, 0.5, false, )\d+"
    r"|#\d+L?|(?:plan_)?id=\d+|@[0-9a-f]+|\b\d{13}\b|[0-9a-f]{8}-[0-9a-f-]{27}|Created Time.*|Last Access.*"
)
Asked = tuple[str, Any]


def ordinary() -> list[Asked]:
    """(text, arguments) of each."""
    found: list[Asked] = []
    for line in FILE.read_text().splitlines():
        text, _, args = line.partition("\t")
        found.append((text.replace("¶", "\n"), json.loads(args) if args else None))
    return found


def outcomes(spark: Any, asked: list[Asked]) -> list[tuple[Any, ...]]:
    """What each statement gives, one after the other, of a view `ut`."""
    spark.sql(VIEW).createOrReplaceTempView("ut")
    try:
        return [outcome(spark, *each) for each in asked]
    finally:
        spark.catalog.dropTempView("ut")


def outcome(spark: Any, text: str, args: Any) -> tuple[Any, ...]:
    """Plan, schema, rows of what costs no job; or class, condition, message, parameters and places of the error."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        frame = spark.sql(text, args=args) if args is not None else spark.sql(text)
        plan = _steady(frame._jdf.queryExecution().optimizedPlan().toString())
        local = "LocalRelation" in plan or "CommandResult" in plan or "OneRowRelation" in plan
        cheap = local and not re.search("Join|Aggregate|Window|Sort|Generate|Script", plan)
        found = sorted(map(str, frame.collect())) if cheap else []
        return "rows", plan, frame.schema.simpleString(), _steady(str(found))
    except PySparkException as fault:
        contexts = [_context(c) for c in fault.getQueryContext()]
        return (
            type(fault).__name__,
            fault.getCondition(),
            _steady(str(fault)),
            fault.getMessageParameters(),
            contexts,
        )
    except Py4JJavaError as fault:
        # An exception of Java's that PySpark has no class for.
        return (
            "Java",
            fault.java_exception.getClass().getName(),
            _steady(str(fault.java_exception.getMessage())),
        )


def _context(context: Any) -> tuple[Any, ...]:
    return tuple(
        getattr(context, name)()
        for name in ("objectType", "objectName", "startIndex", "stopIndex", "fragment")
    )


def _steady(text: str) -> str:
    return _VARYING.sub("#", text)
