"""What kept sketches know of each group of a question."""

from __future__ import annotations

import numpy as np
import pytest
from support.kept import remember
from support.kept_kinds import of_table

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.form import Groups
from skimql.engine.spark.own import OwnSpark

RNG = np.random.default_rng(7)
LEFT = (RNG.zipf(1.2, 20_000) % 3_000).astype(np.int64)
RIGHT = RNG.integers(0, 3_000, 10_000)
GROUP, OTHER = np.arange(20_000) % 3, np.arange(10_000) % 2
GROUPS = Groups(("`g`",), ("bigint",), (("0",), ("1",), ("2",)), ())
OTHERS = Groups(("`g`",), ("bigint",), (("0",), ("1",)), ())


@pytest.mark.parametrize("method", ["hash", "key_sample"])
def test_groups_of_several_tables_are_answered_by_sketches_with_groups_of_each(monkeypatch, method):
    sizes = {
        "hash": {"rows": 11, "buckets": 512, "limit_bytes": 0},
        "key_sample": {"rows": 1, "buckets": 1_000},
    }[method]
    monkeypatch.setattr(Session, "spark", property(lambda self: pytest.fail("Spark was asked for")))
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    kept = (
        of_table("a", method, "t", {"k": LEFT}, None, GROUP, GROUPS, **sizes),
        of_table("b", method, "u", {"k": RIGHT}, None, OTHER, OTHERS, **sizes),
    )
    session = Session(catalog=remember(Catalog(), *kept))
    sql = "SELECT APPROXIMATE u.g AS o, t.g, COUNT(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY u.g, t.g"
    rows = session.sql(sql).rows
    assert [row[:2] for row in rows] == [(o, g) for g in range(3) for o in range(2)]
    for o, g, n in rows:
        counts = (
            np.bincount(LEFT[g == GROUP], minlength=3_000),
            np.bincount(RIGHT[o == OTHER], minlength=3_000),
        )
        assert n.low <= int(counts[0] @ counts[1]) <= n.high
    session.sql("SET skimql.max_groups = 5")
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        session.sql(sql)
