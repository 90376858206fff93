"""What a view needs of its streams."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from support.continuous import MemorySpark, asked, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.cells import WHOLE
from skimql.engine.streams.planned import read_by
from skimql.engine.streams.store import continuous
from skimql.engine.streams.views import planned

SCHEMA = "k BIGINT, ts TIMESTAMP"
TEXT = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"


def test_a_view_of_windows_needs_every_synopsis_by_panes(tmp_path):
    windows = {"window": "1 hour", "time": "ts"}
    streams = [stream_of("a", SCHEMA), stream_of("b", SCHEMA)]
    catalog = declared(Catalog(tmp_path / "c"), streams, {"q": (TEXT, windows), "r": TEXT})
    found = continuous(catalog)
    q, r = (planned(found.views[n], found.streams) for n in "qr")
    for name in ("a", "b"):
        ((synopsis, split),) = q.needs_of(name)
        assert (split.windows, q.synopses_of(name)) == (q.windows[name], ())
        assert r.needs_of(name.upper()) == ((synopsis, WHOLE),)
        assert r.synopses_of(name) == (synopsis,)
    assert (q.zone, r.zone, list(read_by(q.plan))) == ("UTC", None, [(0, 0), (1, 1)])


EVENTS = "k BIGINT, g STRING, v BIGINT, ts TIMESTAMP, op STRING"
DELETES = "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"
START = datetime(2026, 1, 1, tzinfo=UTC)
COUNTS = {
    "values": "SELECT APPROXIMATE COUNT(DISTINCT v) AS n, COUNT(*) AS c FROM a WHERE k < 9",
    "pairs": "SELECT APPROXIMATE COUNT(DISTINCT k, g) AS n FROM a",
    "table": "SELECT APPROXIMATE COUNT(DISTINCT a.v) AS n FROM a JOIN t ON a.k = t.ip",
    "key_of_table": "SELECT APPROXIMATE COUNT(DISTINCT a.k) AS n FROM a JOIN t ON a.k = t.ip",
    "key": "SELECT APPROXIMATE COUNT(DISTINCT a.k) AS n FROM a JOIN b ON a.k = b.k",
    "both": "SELECT APPROXIMATE COUNT(DISTINCT a.v, b.v) AS n FROM a JOIN b ON a.k = b.k",
    "with_key": "SELECT APPROXIMATE COUNT(DISTINCT a.k, a.v) AS n FROM a JOIN b ON a.k = b.k",
    "left_out": "SELECT APPROXIMATE COUNT(DISTINCT v) AS n FROM (SELECT v FROM a EXCEPT SELECT v FROM b)",
    "common": "SELECT APPROXIMATE COUNT(DISTINCT v) AS n FROM (SELECT v FROM a WHERE k > 2 INTERSECT SELECT v FROM b)",
}
TABLE = {"t": arrow("ip BIGINT, w BIGINT", [(n % 5, n) for n in range(12)])}


def random_events(random):
    rows = int(random.integers(5, 40))
    keys, values, minutes = (random.integers(0, n, rows).tolist() for n in (12, 15, 20))
    groups = [None if g == 0 else f"g{g}" for g in random.integers(0, 4, rows)]
    op = np.where(random.random(rows) < 0.35, "d", "i").tolist()
    times = [START + timedelta(minutes=m) for m in minutes]
    return list(zip(keys, groups, values, times, op, strict=True))


def there(rows, of):
    """The values that are there: not as often deleted as inserted."""
    net = {}
    for row in rows:
        value = of(row)
        if value is not None:
            net[value] = net.get(value, 0) + (-1 if row[4] == "d" else 1)
    return {value for value, n in net.items() if n}


def truths(a, b):
    ips = {r["ip"] for r in TABLE["t"].to_pylist()}
    left, right = there(a, lambda r: (r[2], r[0])), there(b, lambda r: (r[2], r[0]))
    keys, theirs = there(a, lambda r: r[0]), there(b, lambda r: r[0])
    values = there(b, lambda r: r[2])
    return {
        "values": len(there([r for r in a if r[0] < 9], lambda r: r[2])),
        "pairs": len(there(a, lambda r: None if r[1] is None else (r[0], r[1]))),
        "table": len(there([r for r in a if r[0] in ips], lambda r: r[2])),
        "key_of_table": len(there([r for r in a if r[0] in ips], lambda r: r[0])),
        "key": len(keys & theirs),
        "both": len({(v, w) for v, k in left for w, q in right if k == q}),
        "with_key": len({(k, v) for v, k in left if k in theirs}),
        "left_out": len(there(a, lambda r: r[2]) - values),
        "common": len(there([r for r in a if r[0] > 2], lambda r: r[2]) & values),
    }


@pytest.mark.parametrize("seed", range(3))
def test_distinct_values_of_streams_are_those_that_are_there(tmp_path, seed):
    random = np.random.default_rng(seed)
    windows = {"window": "10 minutes", "time": "ts"}
    views = {**COUNTS, **{f"{name}_w": (text, windows) for name, text in COUNTS.items()}}
    views["grouped"] = "SELECT APPROXIMATE g, COUNT(DISTINCT v) AS n FROM a GROUP BY g"
    streams = [stream_of(n, EVENTS, DELETES) for n in "ab"]
    catalog = declared(Catalog(tmp_path / "c"), streams, views, TABLE)
    batches = {n: [random_events(random) for _ in range(2)] for n in "ab"}
    for name in "ab":
        tables = [arrow(EVENTS, rows) for rows in batches[name]]
        MemorySpark(catalog, name, tmp_path / name, TABLE).run(tables, last=1)
        MemorySpark(catalog, name, tmp_path / name, TABLE).run(tables)
    a, b = ([row for rows in batches[n] for row in rows] for n in "ab")
    whole = truths(a, b)
    for name in COUNTS:
        (row,) = asked(catalog, name).records()
        assert (name, row["n"], row["n_low"], row["n_high"]) == (name, *[whole[name]] * 3)
    for start in (START, START + timedelta(minutes=10)):
        inside = [[r for r in rows if start <= r[3] < start + timedelta(minutes=10)] for rows in (a, b)]
        for name, truth in truths(*inside).items():
            (row,) = (r for r in asked(catalog, f"{name}_w").records() if r["window_start"] == start)
            assert (name, row["n"]) == (name, truth)
    by_group = {r["g"]: r["n"] for r in asked(catalog, "grouped").records()}
    assert all(n == len(there([r for r in a if r[1] == g], lambda r: r[2])) for g, n in by_group.items())


def test_many_distinct_values_with_deletions_are_within_the_interval(tmp_path):
    random = np.random.default_rng(7)
    sizes = {"sparse": False, "buckets": 1024, "confidence": 0.999}
    names = ("values", "key", "left_out", "pairs")
    streams = [stream_of(n, EVENTS, DELETES) for n in "ab"]
    catalog = declared(Catalog(tmp_path / "c"), streams, {n: COUNTS[n] for n in names}, TABLE, **sizes)
    events = {}
    for name, shift in (("a", 0), ("b", 1500)):
        keys = (random.permutation(3000) + shift).tolist()
        rows = [(k, f"g{k % 3}", k, START, "i") for k in keys]
        gone = [(*row[:4], "d") for row in rows[:1000]]
        MemorySpark(catalog, name, tmp_path / name, TABLE).run([arrow(EVENTS, gone), arrow(EVENTS, rows)])
        events[name] = [*rows, *gone]
    left, right = (there(events[n], lambda r: r[0]) for n in "ab")
    truth = {
        "values": len({k for k in left if k < 9}),
        "key": len(left & right),
        "left_out": len(left - right),
        "pairs": 2000,
    }
    for name in names:
        (row,) = asked(catalog, name).records()
        assert row["n_low"] <= truth[name] <= row["n_high"], name
        assert row["n_high"] - row["n_low"] < 1500, name
