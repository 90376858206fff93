"""What `benchmarks.scale` is judged by: ratios of its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Record = dict[str, Any]
Bar = tuple[str, float, float, str]  # what, measured, bar, "<=" or ">="

KEY = "bigint zipf"
COMPARED = (
    "scan",
    "approx_count_distinct",
    "nothing",
    "sketch 7 x 1k",
    "sketch 11 x 1k",
    "sketch 11 x 4k",
    "COUNT and SUM 11 x 4k",
    "two keys 11 x 4k",
    "two sketches 11 x 4k",
    "key sample 1/256",
    "3 sketches, one scan",
    "3 sketches, three scans",
    "exact join",
    "exact join, grouped first",
    "answer from stored sketches",
)


def bars(records: Sequence[Record]) -> Iterator[Bar]:
    """The bars of one run."""

    def cpu(job: str, route: str, key: str = KEY) -> float:
        return _one(records, job, route, key)["cpu_s"]

    yield (
        "Arrow 7 x 1k / mapInArrow that does nothing",
        cpu("sketch 7 x 1k", "arrow") / cpu("nothing", "arrow"),
        1.6,
        "<=",
    )
    distinct = cpu("approx_count_distinct", "spark")
    yield "JVM 11 x 1k / approx_count_distinct", cpu("sketch 11 x 1k", "jvm") / distinct, 1.2, "<="
    yield (
        "JVM 11 x 1k / Arrow 7 x 1k",
        cpu("sketch 11 x 1k", "jvm") / cpu("sketch 7 x 1k", "arrow"),
        0.6,
        "<=",
    )
    yield "JVM 11 x 4k / approx_count_distinct", cpu("sketch 11 x 4k", "jvm") / distinct, 1.8, "<="
    for job, bar in (("sketch", 2.5), ("COUNT and SUM", 3.0), ("two keys", 3.0), ("two sketches", 3.0)):
        ratio = cpu(f"{job} 11 x 4k", "sql") / distinct
        yield f"skim_sketch, {job} 11 x 4k / approx_count_distinct", ratio, bar, "<="
    yield "key sample 1/256 / scan", cpu("key sample 1/256", "jvm") / cpu("scan", "spark"), 1.3, "<="
    for route in ("arrow", "jvm"):
        ratio = cpu("3 sketches, one scan", route) / cpu("3 sketches, three scans", route)
        yield f"{route}: three sketches in one scan / three scans", ratio, 0.6, "<="
    for law in ("zipf", "uniform"):
        for job in ("sketch 11 x 1k", "sketch 11 x 4k"):
            ratio = cpu(job, "jvm", f"string {law}") / cpu(job, "jvm", f"bigint {law}")
            yield f"JVM {job[7:]}, {law}: string / bigint", ratio, 2.5, "<="
    stored = _one(records, "answer from stored sketches", "driver", "bigint uniform")["wall_s"]
    for job in ("exact join", "exact join, grouped first"):
        exact = _one(records, job, "spark", "bigint uniform")["wall_s"]
        yield f"Spark's {job} / stored answer (wall)", exact / stored, 1000, ">="


def linear_bars(records: Sequence[Record]) -> Iterator[Bar]:
    """Cost of a tuple between each two sizes, against that between the least and the greatest."""
    for job, route in dict.fromkeys((r["job"], r["route"]) for r in records):
        own = sorted((r for r in records if (r["job"], r["route"]) == (job, route)), key=lambda r: r["rows"])
        middle = own[len(own) // 2]
        slopes = [_slope(a, b) for a, b in ((own[0], middle), (middle, own[-1]))]
        yield (
            f"{route} {job}: slope {middle['rows']:,} to {own[-1]['rows']:,} / before",
            slopes[1] / slopes[0],
            1.15,
            "<=",
        )
        yield f"{route} {job}: the same", slopes[1] / slopes[0], 0.85, ">="


def _slope(small: Record, large: Record) -> float:
    return (large["cpu_s"] - small["cpu_s"]) / (large["rows"] - small["rows"])


def _one(records: Sequence[Record], job: str, route: str, key: str) -> Record:
    [found] = [r for r in records if (r["job"], r["route"], r["key"]) == (job, route, key)]
    return found
