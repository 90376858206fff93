"""Windows of streams: every window is what a batch query gives over the events in it that came in time."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from support.continuous import Killed, MemorySpark, asked, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.store import continuous, load
from skimql.errors import StreamError

SCHEMA = "k BIGINT, g STRING, v BIGINT, ts TIMESTAMP, op STRING"
DELETES = "CASE WHEN `op` = 'd' THEN -1 ELSE 1 END"
START = datetime(2026, 3, 29, tzinfo=UTC)
VIEWS = int(os.environ.get("SKIMQL_RANDOM_VIEWS", "18"))
WINDOWS = [(10, 10, 0), (10, 5, 7), (15, 10, 3), (6, 2, 20)]
STATIC = arrow("ip BIGINT, w BIGINT", [(n % 7, n) for n in range(20)])


def at(minute):
    return None if minute is None else START + timedelta(minutes=minute)


def table(events):
    return arrow(SCHEMA, [(k, g, v, at(t), op) for k, g, v, t, op in events])


def random_batches(random, batches, keys):
    """Events whose time goes on from batch to batch; some are late, some delete, some have no time."""
    found = []
    for number in range(batches):
        rows = int(random.integers(0, 25))
        around = 9 * number + random.integers(-25, 10, rows)
        times = [None if random.random() < 0.05 else int(t) for t in around]
        op = np.where(random.random(rows) < 0.2, "d", "i").tolist()
        groups = [None if g == 0 else f"g{g}" for g in random.integers(0, 5, rows)]
        keyed, values = (random.integers(0, n, rows).tolist() for n in (keys, 50))
        found.append(list(zip(keyed, groups, values, times, op, strict=True)))
    return found


class Model:
    """What is in time, event by event."""

    def __init__(self, batches, length, slide, delay):
        self.length, self.slide = length, slide
        self.events, self.latest, self.before = [], None, None
        self.late = self.dropped = self.untimed = 0
        for batch in batches:
            mark = None if self.latest is None else self.latest - delay
            timed = [e for e in batch if e[3] is not None]
            self.untimed += len(batch) - len(timed)
            own = [e for e in timed if mark is None or self.last_end(e[3]) > mark - length]
            self.dropped += len(timed) - len(own)
            self.late += sum(mark is not None and e[3] < mark for e in own)
            self.events += own
            self.before = mark
            self.latest = max(
                [*([] if self.latest is None else [self.latest]), *(e[3] for e in own)], default=None
            )

    def last_end(self, time):
        return time // self.slide * self.slide + self.length

    def starts(self, mark):
        """The windows that have an event, and have not closed long ago."""
        found = set()
        for event in self.events:
            last = event[3] // self.slide * self.slide
            found.update(s for s in range(last, event[3] - self.length, -self.slide))
        return {s for s in found if mark is None or s + self.length > mark - self.length}

    def within(self, start):
        return [
            (k, g, v, -1 if op == "d" else 1)
            for k, g, v, t, op in self.events
            if start <= t < start + self.length
        ]


def with_windows(length, slide, delay, **more):
    return {
        "window": f"{length} minutes",
        "slide": f"{slide} minutes",
        "watermark": f"{delay} minutes",
        "time": "ts",
        **more,
    }


def parts_of(catalog, name):
    """Every cell as its counters, and the clocks."""
    catalog = Catalog(catalog.folder)
    state = load(catalog, continuous(catalog).streams[name], 1).state
    cells = {
        (need, cell): (b.sketch.dense().counters.tolist(), b.tally)
        for need, parts in state.parts.items()
        for cell, b in parts.cells.items()
    }
    return cells, dict(state.clocks), {n: p.since for n, p in state.parts.items()}


@pytest.mark.parametrize("part", range(3))
def test_random_windows_over_random_orders_are_what_a_batch_query_gives(tmp_path, part):
    for number in range(part, VIEWS, 3):
        one_view(np.random.default_rng(number), tmp_path / str(number))


def one_view(random, folder):
    length, slide, delay = WINDOWS[random.integers(len(WINDOWS))]
    kind = ("alone", "table", "streams", "self")[random.integers(4)]
    names = ("a", "b") if kind == "streams" else ("a",)
    source = {
        "alone": "a",
        "table": "a JOIN t ON a.k = t.ip",
        "streams": "a JOIN b ON a.k = b.k",
        "self": "a JOIN a AS b ON a.k = b.k",
    }[kind]
    text = f"SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s FROM {source} WHERE a.v > 5"
    batches = {n: random_batches(random, int(random.integers(1, 6)), 9) for n in names}
    statics = {"t": STATIC} if kind == "table" else {}
    catalog = declared(
        Catalog(folder / "catalog"),
        [stream_of(n, SCHEMA, DELETES) for n in names],
        {"q": (text, with_windows(length, slide, delay))},
        statics,
    )
    sparks = {n: MemorySpark(catalog, n, folder / n, statics) for n in names}
    tables = {n: [table(b) for b in batches[n]] for n in names}
    # The streams take turns as it comes, are killed and start again.
    turns = random.permutation([n for n in names for _ in batches[n]])
    done = dict.fromkeys(names, 0)
    for name in turns.tolist():
        done[name] += 1
        if random.random() < 0.3:
            place = ("planned", "built", "saved")[random.integers(3)]
            with contextlib.suppress(Killed):
                sparks[name].run(tables[name], (done[name] - 1, place), last=done[name])
        sparks[name].run(tables[name], last=done[name])
    models = {n: Model(batches[n], length, slide, delay) for n in names}
    found = asked(catalog, "q")
    marks = [m.before for m in models.values()]
    least = None if None in marks else min(marks)
    expected = []
    for start in sorted({s for m in models.values() for s in m.starts(least)}):
        mine = [e for e in models["a"].within(start) if e[2] > 5]
        theirs = {
            "alone": [(k, g, v, 1) for k, g, v, _ in mine[:1]] or [(0, "", 0, 1)],
            "table": [(r["ip"], None, 0, 1) for r in STATIC.to_pylist()],
            "streams": models["b"].within(start) if kind == "streams" else [],
            "self": models["a"].within(start),
        }[kind]
        pairs = [(s * t, v) for k, _, v, s in mine for q, _, _, t in theirs if k == q or kind == "alone"]
        count, total = sum(w for w, _ in pairs), sum(w * v for w, v in pairs)
        expected.append((at(start), at(start + length), count, total))
    rows = [(r["window_start"], r["window_end"], r["n"], r["s"]) for r in found.records()]
    assert [r[:3] for r in rows] == [e[:3] for e in expected]
    assert all(r[3] == e[3] or (r[3] is None and e[2] == 0) for r, e in zip(rows, expected, strict=True))
    for name, model in models.items():
        _, clocks, _ = parts_of(catalog, name)
        for clock in clocks.values():
            assert (clock.late, clock.dropped, clock.untimed) == (model.late, model.dropped, model.untimed)


@pytest.mark.parametrize("number", range(6))
def test_random_groups_are_exact_and_those_without_room_are_one_row(tmp_path, number):
    random = np.random.default_rng(100 + number)
    length, slide, delay = WINDOWS[random.integers(len(WINDOWS))]
    most, deletions = int(random.integers(1, 6)), number % 3 == 2
    kinds = {"alone": "a", "table": "a JOIN t ON a.k = t.ip", "streams": "a JOIN b ON a.k = b.k"}
    streams = [stream_of("a", SCHEMA, DELETES if deletions else None), stream_of("b", SCHEMA)]
    batches = {n: random_batches(random, int(random.integers(2, 6)), 9) for n in "ab"}
    views = {}
    for kind, source in kinds.items():
        text = (
            f"SELECT APPROXIMATE a.g, COUNT(*) AS n, SUM(a.v) AS s FROM {source} WHERE a.v > 5 GROUP BY a.g"
        )
        views |= {kind: text, f"{kind}_w": (text, with_windows(length, slide, delay))}
    statics = {"t": STATIC}
    catalog = declared(Catalog(tmp_path / "c"), streams, views, statics, max_groups=most)
    for name in "ab":
        spark, tables = (
            MemorySpark(catalog, name, tmp_path / name, statics),
            [table(b) for b in batches[name]],
        )
        with contextlib.suppress(Killed):
            spark.run(tables, (1, "saved"))
        spark.run(tables)
    models = {n: Model(batches[n], length, slide, delay) for n in "ab"}
    every = {
        n: [
            (k, g, v, -1 if op == "d" and deletions and n == "a" else 1)
            for b in batches[n]
            for k, g, v, _, op in b
        ]
        for n in "ab"
    }
    marks = [m.before for m in models.values()]
    for kind in kinds:
        for name in (kind, f"{kind}_w"):
            found = asked(catalog, name).records()
            starts = {r.get("window_start") for r in found}
            for start in starts:

                def events(n, start=start):
                    if start is None:
                        return every[n]
                    minute = int((start - START).total_seconds()) // 60
                    own = models[n].within(minute)
                    return own if n == "a" and deletions else [(k, g, v, 1) for k, g, v, _ in own]

                mine = [e for e in events("a") if e[2] > 5]
                theirs = {"table": [(r["ip"],) for r in STATIC.to_pylist()], "streams": events("b")}.get(kind)
                truth = {}
                for k, g, v, sign in mine:
                    times = sign * (1 if theirs is None else sum(t[0] == k for t in theirs))
                    n, s = truth.get(g, (0, 0))
                    truth[g] = n + times, s + times * v
                rows = [r for r in found if r.get("window_start") == start]
                named = {r["g"]: (r["n"], r["s"]) for r in rows if not r["other"]}
                rest = [(r["g"], r["n"], r["s"]) for r in rows if r["other"]]
                assert all(truth[g] == own for g, own in named.items())
                there = {g for g, (n, _) in truth.items() if n > 0}
                if len({g for _, g, _, _ in mine}) <= most:
                    assert (set(named), rest) == (there, [])
                if not deletions:
                    others = [truth[g] for g in there - set(named)]
                    assert rest == [(None, *map(sum, zip(*others, strict=True)))] * bool(others)
                    assert start is not None or len(named) <= most
    assert marks


def test_a_killed_stream_ends_with_the_same_panes_bit_for_bit(tmp_path):
    random = np.random.default_rng(5)
    tables = [table(b) for b in random_batches(random, 6, 9)]
    views = {
        "q": ("SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN a AS b ON a.k = b.k", with_windows(10, 5, 7)),
        "r": ("SELECT APPROXIMATE SUM(v) AS s FROM a", with_windows(10, 10, 0)),
        "l": "SELECT APPROXIMATE COUNT(*) AS n FROM a",
        "g": ("SELECT APPROXIMATE g, COUNT(*) AS n FROM a GROUP BY g", with_windows(10, 5, 7)),
        "h": "SELECT APPROXIMATE a.g, COUNT(*) AS n FROM a JOIN a AS b ON a.k = b.k GROUP BY a.g",
    }
    found = []
    for kills in ([], [(0, "saved"), (2, "planned"), (3, "built"), (4, "saved"), (5, "committed")]):
        folder = tmp_path / str(len(kills))
        catalog = declared(Catalog(folder / "c"), [stream_of("a", SCHEMA, DELETES)], views)
        spark = MemorySpark(catalog, "a", folder / "checkpoint")
        for kill in kills:
            with contextlib.suppress(Killed):
                spark.run(tables, kill)
        spark.run(tables)
        found.append((parts_of(catalog, "a"), [asked(catalog, v).records() for v in views]))
    assert found[0] == found[1]


def one_stream(folder, text, settings, batches, schema=SCHEMA, **more):
    catalog = declared(Catalog(folder / "c"), [stream_of("a", schema)], {"q": (text, settings)}, **more)
    spark = MemorySpark(catalog, "a", folder / "checkpoint")
    spark.run(batches)
    return catalog


COUNT = "SELECT APPROXIMATE COUNT(*) AS n FROM a"


def test_a_row_that_is_as_old_as_the_watermark_is_counted(tmp_path):
    batches = [table([(1, "g", 1, t, "i")]) for t in (0, 10, 10, 9)]
    catalog = one_stream(tmp_path, COUNT, with_windows(10, 10, 0), batches)
    assert [r["n"] for r in asked(catalog, "q").records()] == [2, 2]
    (clock,) = parts_of(catalog, "a")[1].values()
    assert (clock.late, clock.dropped) == (1, 0)


def test_one_wrong_clock_moves_no_watermark_and_makes_no_pane(tmp_path):
    far, long_ago = 4 * 365 * 24 * 60, -50 * 365 * 24 * 60
    rows = [(1, "g", 1, t, "i") for t in (3, 4, 12, far, long_ago)]
    for order, batches in enumerate(([rows], [rows[3:4] + rows[:3], rows[3:]], [rows[:3], rows[3:]])):
        settings = with_windows(10, 10, 0, ahead="1 day")
        catalog = one_stream(tmp_path / str(order), COUNT, settings, [table(b) for b in batches])
        (clock,) = parts_of(catalog, "a")[1].values()
        assert (clock.latest, clock.ahead) == (
            int(at(12).timestamp()) * 10**6,
            sum(r[3] == far for b in batches for r in b),
        )
        found = asked(catalog, "q")
        now = [r["n"] for r in found.records() if r["window_start"].year == 2026]
        assert now == [2, 1]
        assert any("ahead of all others, and " in n for n in found.notes)


def test_times_outside_the_calendar_are_in_no_window(tmp_path):
    import pyarrow as pa

    micros = [-(2**63), 2**63 - 1, 10**18, int(at(1).timestamp()) * 10**6]
    times = pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))
    frame = table([(1, "g", 1, 0, "i")] * 4).set_column(3, "ts", times)
    catalog = one_stream(tmp_path, COUNT, with_windows(10, 10, 0), [frame])
    assert [r["n"] for r in asked(catalog, "q").records()] == [1]
    (clock,) = parts_of(catalog, "a")[1].values()
    assert (clock.ahead, clock.dropped) == (2, 1)


def test_windows_of_wall_clocks_have_no_zone(tmp_path):
    schema = "k BIGINT, ts TIMESTAMP_NTZ"
    wall = datetime(2026, 3, 29, 2, 30)  # an hour that Berlin does not have
    batches = [arrow(schema, [(1, wall), (2, wall + timedelta(hours=1))])]
    catalog = one_stream(tmp_path, COUNT, with_windows(60, 60, 0), batches, schema)
    rows = asked(catalog, "q").arrow()
    assert rows["window_start"].to_pylist() == [datetime(2026, 3, 29, 2), datetime(2026, 3, 29, 3)]


@pytest.mark.parametrize("panes", [60, 45])
def test_too_many_panes_stop_the_stream_before_the_batch(tmp_path, monkeypatch, panes):
    for module in ("cells", "panes"):
        monkeypatch.setattr(f"skimql.engine.streams.{module}.MOST_PANES", 50)
    few = [table([(1, "g", 1, t, "i") for t in range(-20, 2, 2)])]
    many = [*few, table([(1, "g", 1, t, "i") for t in range(0, 2 * panes, 2)])]
    catalog = one_stream(tmp_path, COUNT, with_windows(2, 2, 100), few)
    with pytest.raises(StreamError) as fault:
        MemorySpark(catalog, "a", tmp_path / "checkpoint").run(many)
    assert (fault.value.code, bool(fault.value.hint)) == ("SKIMQL_STREAM_PANES", True)
    assert [r["n"] for r in asked(catalog, "q").records()] == [1] * 11


def test_panes_wait_for_the_stream_whose_watermark_is_behind_and_then_go(tmp_path):
    streams = [stream_of("a", SCHEMA), stream_of("b", SCHEMA)]
    text = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"
    catalog = declared(Catalog(tmp_path / "c"), streams, {"q": (text, with_windows(10, 10, 0))})
    ahead = [table([(1, "g", 1, t, "i")]) for t in (0, 100, 200, 201)]
    sparks = {n: MemorySpark(catalog, n, tmp_path / n) for n in "ab"}
    sparks["a"].run(ahead)
    sparks["b"].run([table([(1, "g", 1, 0, "i")])])
    found = asked(catalog, "q").records()
    assert [(r["window_start"], r["n"]) for r in found] == [(at(0), 1), (at(100), 0), (at(200), 0)]
    sparks["b"].run([table([(1, "g", 1, t, "i")]) for t in (0, 150, 205)])
    assert [r["n"] for r in asked(catalog, "q").records()] == [0, 2]
    sparks["a"].run([*ahead, table([(1, "g", 1, 202, "i")])])
    cells, _, _ = parts_of(catalog, "a")
    assert {pane for _, (pane, _) in cells} == {int(at(200).timestamp()) // 600}


def test_a_view_with_groups_or_windows_and_no_row_has_its_columns(tmp_path):
    views = {
        "g": "SELECT APPROXIMATE g, SUM(v) AS s FROM a GROUP BY g",
        "w": ("SELECT APPROXIMATE COUNT(*) AS n FROM a", {"window": "1 hour", "time": "ts"}),
    }
    catalog = declared(Catalog(tmp_path / "c"), [stream_of("a", SCHEMA, DELETES)], views)
    assert asked(catalog, "g").arrow().column_names[:5] == ["g", "s", "s_low", "s_high", "other"]
    assert asked(catalog, "w").arrow().column_names[:3] == ["window_start", "window_end", "n"]
