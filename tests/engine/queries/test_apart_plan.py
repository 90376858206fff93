"""What `cache` cannot keep, and what has no rows and buckets, is refused with the reason and a way out."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from skimql import SkimqlError
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.settings import Settings

TABLES = {
    "clicks": pa.table({"user": [1, 2, 2, 3] * 9}),
    "orders": pa.table({"user": [2, 3, 3, 4] * 9, "item": [5, 6, 7, 7] * 9, "paid": [1, 2, 3, 4] * 9}),
    "reviews": pa.table({"item": [5, 7] * 9}),
}
BACKEND = MemoryBackend(MemoryTables(TABLES))
TWO = "FROM clicks c JOIN orders o ON c.user = o.user"
CHAIN = f"{TWO} JOIN reviews r ON o.item = r.item"


@pytest.mark.parametrize(
    ("question", "settings", "code", "why"),
    [
        (f"COUNT(DISTINCT o.item) {TWO}", {}, "SKIMQL_CLAUSE", "behind an exact message of clicks"),
        (f"COUNT(DISTINCT o.user), COUNT(*) {TWO}", {}, "SKIMQL_CLAUSE", "beside other aggregates"),
        (f"o.item, COUNT(DISTINCT o.user) {TWO} GROUP BY o.item", {}, "SKIMQL_CLAUSE", "in groups of a join"),
        (f"COUNT(*) {CHAIN} USING skimmed", {}, "SKIMQL_CLAUSE", "join two tables on one key"),
        (f"COUNT(*) {TWO} USING key_sample OPTIONS (buckets = 64)", {}, "SKIMQL_CLAUSE", "no rows and buckets"),
        (f"COUNT(*) {CHAIN} USING sample_sketch OPTIONS (rows = 5)", {"cache": False}, "SKIMQL_CLAUSE", "no rows and buckets"),
        (f"SUM(CAST(o.paid AS DOUBLE)) {TWO} USING key_sample", {}, "SKIMQL_WEIGHT_TYPE", "keeps integers"),
        (f"COUNT(*) {TWO} USING agms", {"max_bytes": 1 << 10}, "SKIMQL_MAX_BYTES", "more than skimql.max_bytes"),
        (f"COUNT(*) {TWO} SIZE 200 USING skimmed", {}, "SKIMQL_BUDGET_EXCEEDED", "too few"),
        (f"COUNT(*) {TWO} USING key_sample", {"route": "jvm"}, "SKIMQL_ROUTE", "Python workers make it"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_with_the_reason(question, settings, code, why):
    with pytest.raises(SkimqlError, match=why) as caught:
        MemoryRun.of(
            f"SELECT APPROXIMATE {question}", BACKEND, replace(Settings(), **{"cache": True, **settings})
        ).answer()
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)


def test_what_cache_does_not_change_is_planned_as_before():
    for question in (
        f"COUNT(*) {TWO} USING hash",
        f"COUNT(*) {CHAIN} USING convolution",
        "COUNT(*) FROM clicks",
    ):
        run = MemoryRun.of(f"SELECT APPROXIMATE {question}", BACKEND, replace(Settings(), cache=True))
        assert type(run.plan().attempt).__name__ == "SketchJoin"
