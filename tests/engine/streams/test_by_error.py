"""ERROR WITHIN in a view: method and size as its first events predict them, honoured or refused by name."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.continuous import MemorySpark, asked, declared, declared_set, stream_of
from support.streams import zipf

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.memory_backend.batches import MemoryBuilder
from skimql.engine.streams.by_error import by_way, chosen, of_many_streams, pilot_plan
from skimql.engine.streams.describe import explain, show_queries
from skimql.engine.streams.sampled import with_key_samples
from skimql.engine.streams.store import continuous
from skimql.engine.streams.views import planned, residual_of
from skimql.errors import SkimqlError
from skimql.optimizer.plan import Plan, Scan

SCHEMA = "k BIGINT, v BIGINT"
TWO = "SELECT APPROXIMATE COUNT(*) AS n, AVG(a.v) AS m FROM a JOIN b USING (k)"
THREE = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.k"


def flat(random, number):
    return events(random.integers(0, 30_000, 60_000))


def skewed(random, number):
    return events(random.permutation(np.repeat(np.arange(30_000), zipf(30_000, 1.0, 60_000, 20 * number))))


def events(keys):
    return pa.table({"k": np.asarray(keys, np.int64), "v": np.asarray(keys, np.int64) % 10 + 1})


def put(folder, text, first, most_bytes=1 << 28):
    """The view, planned from the first events of its streams; its catalog."""
    streams = [stream_of(n, SCHEMA) for n in first]
    catalog = declared(Catalog(folder / "c"), streams, {"q": text})
    found = continuous(catalog)
    shown = planned(found.views["q"], found.streams)
    plan = pilot_plan(with_key_samples(shown.plan, residual_of(shown.query, shown.view.folds), 1, 2))
    built = {}
    for name, table in first.items():
        own = tuple(s for s in plan.synopses if s.table == name)
        part = Plan(plan.query, plan.seed, own, (Scan(name, tuple(range(len(own)))),), (), (), ())
        built.update(zip(own, MemoryBuilder(name).build(table, part, None)[0], strict=True))
    way, why = chosen(plan, built, shown.error, shown.view.confidence, most_bytes)
    view = by_way(shown, way, why, found.streams).view

    def change(now, _):
        return type(now)(now.streams, {"q": view}, now.sets)

    catalog.change_streams(change)
    return catalog, way


@pytest.mark.parametrize(
    ("text", "events_of", "method"),
    [
        (f"{TWO} ERROR WITHIN 10%", flat, "key_sample"),
        (f"{TWO} ERROR WITHIN 10%", skewed, "skimmed"),
        (f"{THREE} ERROR WITHIN 15% CONFIDENCE 90%", flat, "key_sample"),
    ],
)
def test_the_cheapest_method_is_taken_and_reaches_the_error(tmp_path, text, events_of, method):
    names, missed, widths = ("abc" if "JOIN c" in text else "ab"), 0, []
    target = 0.15 if "15%" in text else 0.1
    for seed in range(4):
        random, folder = np.random.default_rng(seed), tmp_path / str(seed)
        batches = {n: [events_of(random, i) for _ in range(2)] for i, n in enumerate(names)}
        seeded = f"{text} SEED {seed + 1}"
        catalog, way = put(folder, seeded, {n: b[0] for n, b in batches.items()})
        assert way.method == method
        for name, own in batches.items():
            MemorySpark(catalog, name, folder / f"of {name}").run(own)
        answer = asked(catalog, "q")
        assert answer.method == method
        counts = [
            np.bincount(np.concatenate([t["k"].to_numpy() for t in b]), minlength=30_000)
            for b in batches.values()
        ]
        truth = float(np.prod([c.astype(float) for c in counts], axis=0).sum())
        row = answer.records()[0]
        missed += abs(row["n"] / truth - 1) > target
        widths.append((row["n_high"] - row["n_low"]) / 2 / truth)
        assert row["target"] in (("unknown",) if method == "key_sample" else ("met", "missed"))
        (told,) = show_queries(catalog, extended=True).records()
        assert told["bytes"] <= 1.05 * way.nbytes + 4096
        assert told["predicted"] < 2 * target * truth
        plan = explain(catalog, "q").rows[0][0]
        assert f"{method} is taken" in plan
        assert f"+-{told['half_width']:,.6g} now, +-{told['predicted']:,.6g} predicted, by {method}" in plan
    assert missed <= 1
    assert 0.3 * target < np.median(widths) < 1.5 * target, widths


def test_using_and_the_bytes_there_are_are_kept_to(tmp_path):
    random = np.random.default_rng(1)
    first = {"a": flat(random, 0), "b": flat(random, 1)}
    ways = {}
    for method in ("hash", "skimmed", "key_sample"):
        _, ways[method] = put(tmp_path / method, f"{TWO} ERROR WITHIN 10% USING {method}", first)
        assert ways[method].method == method
    assert ways["key_sample"].nbytes < ways["hash"].nbytes
    with pytest.raises(SkimqlError, match="no method is predicted to reach") as fault:
        put(tmp_path / "small", f"{TWO} ERROR WITHIN 1%", first, 4096)
    assert fault.value.code == "SKIMQL_ACCURACY_NOT_REACHED"
    with pytest.raises(SkimqlError, match="nothing joins") as fault:
        put(tmp_path / "apart", f"{TWO} ERROR WITHIN 5%", {"a": events([1]), "b": events([2])})
    assert fault.value.code == "SKIMQL_NO_PILOT"


def test_a_view_that_is_exact_in_any_case_meets_its_error(tmp_path):
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("a", SCHEMA)],
        {"q": "SELECT APPROXIMATE COUNT(*) AS n FROM a ERROR WITHIN 1%"},
    )
    MemorySpark(catalog, "a", tmp_path / "of a").run([events([1, 2])])
    (row,) = asked(catalog, "q").records()
    assert (row["n"], row["target"]) == (2, "met")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{TWO} ERROR WITHIN 5% SIZE 64 KB", "ERROR WITHIN beside SIZE"),
        (f"{TWO} ERROR WITHIN 5% OPTIONS (buckets = 64)", "ERROR WITHIN beside OPTIONS"),
        ("SELECT APPROXIMATE v, COUNT(*) FROM a GROUP BY v ERROR WITHIN 5%", "ERROR WITHIN beside GROUP BY"),
        ("SELECT APPROXIMATE COUNT(DISTINCT v) FROM a ERROR WITHIN 5%", "ERROR WITHIN beside COUNT"),
        (f"{TWO} ERROR WITHIN 5% BEHAVIOR 'strict'", "BEHAVIOR"),
        (
            "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.v = c.v ERROR WITHIN 5%",
            "joined on several keys",
        ),
    ],
)
def test_an_error_for_which_no_size_is_planned_is_refused_by_name(tmp_path, text, said):
    streams = [stream_of(n, SCHEMA) for n in "abc"]
    with pytest.raises(SkimqlError, match=said) as fault:
        declared(Catalog(tmp_path / "c"), streams, {"q": text})
    assert fault.value.code == "SKIMQL_STREAM_UNSUPPORTED"


def test_views_of_a_set_have_no_error_of_their_own(tmp_path):
    sql = f"CREATE CONTINUOUS VIEWS w (q AS ({TWO} ERROR WITHIN 5%)) SIZE 1 MB MINIMIZE AVERAGE ERROR"
    with pytest.raises(SkimqlError, match="no ERROR WITHIN of their own"):
        declared_set(Catalog(tmp_path / "c"), [stream_of(n, SCHEMA) for n in "ab"], sql)


@pytest.mark.parametrize(
    ("text", "sampled"),
    [
        (THREE, True),
        (f"{THREE} SIZE 64 KB", True),
        (f"{THREE} USING hash", False),
        (TWO, False),
        (THREE.replace("c.k = b.k", "c.v = b.v"), False),
        (THREE.replace("AS n FROM", "AS n, b.v FROM") + " GROUP BY b.v", False),
    ],
)
def test_three_streams_on_one_key_are_sampled_unless_a_view_says_otherwise(tmp_path, text, sampled):
    catalog = declared(Catalog(tmp_path / "c"), [stream_of(n, SCHEMA) for n in "abc"], {"q": text})
    found = continuous(catalog)
    shown = planned(found.views["q"], found.streams)
    chosen_by_default = of_many_streams(shown, found.streams)
    assert (chosen_by_default is not shown) == sampled
    if sampled:
        assert planned(chosen_by_default.view, found.streams).plan.method == "key_sample"
