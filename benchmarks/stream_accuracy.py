"""Intervals of continuous views against numpy: ``python -m benchmarks.stream_accuracy --json FILE``.

Without Spark: batches are Arrow tables, put into states and asked as in a session. Every trial is kept in a file beside
FILE, so that a run goes on where it was, and ranges of seeds may be run apart (``--seeds 0:60``) into one file.

``coverage``: two streams with deletions, flat and Zipf keys, asked after every tenth batch, of all that is there and
in sliding windows. Answers of one seed share their hash functions, so a seed is one trial, which misses as much
as the share of its intervals without the truth; the sum over all seeds is to be within the binomial bound.
``pairs``: two skewed streams in equal bytes, as a view is by default and with hash sketches.
``end_to_end``: as ``coverage``, by Spark and SQL, beside the same without (five seeds).

The exit code is 1 where more intervals miss than correct ones do in 99 of 100 runs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import bdtrc

from skimql import Estimate
from skimql.errors import SkimqlError

from .stream_spark import running_on_spark
from .stream_trials import NAMES, SLIDING, drawn, running, truths, within

Record = dict[str, Any]
CONFIDENCE = 0.95
FALSE_ALARM = 0.01  # that any of the cells of a correct program is reported
BATCHES, EVERY = 20, 10
JOIN = "FROM a JOIN b ON a.k = b.k"
# Aggregates by column, for each view.
VIEWS = {
    "sums": (
        f"SELECT APPROXIMATE COUNT(*) AS n, SUM(a.v) AS s, AVG(a.v) AS m {JOIN} SIZE 32 KB",
        {"n": "COUNT", "s": "SUM", "m": "AVG"},
    ),
    "keys": (
        f"SELECT APPROXIMATE COUNT(DISTINCT a.k) AS d {JOIN} SIZE 24 KB",
        {"d": "COUNT(DISTINCT) of the key"},
    ),
    "alone": (
        "SELECT APPROXIMATE COUNT(DISTINCT k) AS d FROM a SIZE 12 KB",
        {"d": "COUNT(DISTINCT) of one stream"},
    ),
}
WINDOWS = {"landmark": {}, "sliding": SLIDING}
DELETES = (0.0, 0.2, 0.5)
# Flat keys, and Zipf's; half-widths in root mean square errors that are asked of each.
LAWS = {0.0: 3.0, 1.0: 6.0}
DOMAIN, ROWS, SHIFT = 2_000, 1_000, 10
PAIRED = {"domain": 1 << 18, "shift": 100, "rows": 100_000, "batches": 4, "deleted": 0.2}
METHODS = {"default": "", "hash": " USING hash"}
PAIR_BYTES = 32 << 10
AT_MOST, MEAN = 0.7, 0.10  # of the hash sketch's error; the mean relative error


def coverage(
    z: float,
    deletes: float,
    seed: int,
    views: Sequence[str] = tuple(VIEWS),
    runs: Callable[..., Any] = running,
) -> Record:
    """The answers of one seed: aggregate, window, batch, start of the window, truth, value, ends, whether exact."""
    random = np.random.default_rng([seed, round(10 * z), round(100 * deletes)])
    shifts = dict(zip(NAMES, (0, SHIFT), strict=True))
    events = {n: drawn(random, z, DOMAIN, shifts[n], deletes, BATCHES, ROWS) for n in NAMES}
    asked = {f"{v}_{w}": (VIEWS[v][0], WINDOWS[w]) for v in views for w in WINDOWS}
    answers, predicted = [], []
    with runs(asked, seed) as run:
        for batch in range(BATCHES):
            run.feed(events, batch)
            if (batch + 1) % EVERY:
                continue
            if "sums" in views:
                predicted.append(run.predicted("sums_landmark"))
            for window in WINDOWS:
                for view in views:
                    for row in run.asked(f"{view}_{window}"):
                        start = row.get("window_start")
                        moment = None if start is None else round(start.timestamp()) * 1_000_000
                        own = truths(*(within(events[n], batch, moment) for n in NAMES), DOMAIN)
                        for column, aggregate in VIEWS[view][1].items():
                            seen = ends(row[column])
                            answers.append([aggregate, window, batch, moment, own[aggregate], *seen])
    return {"answers": answers, "predicted": predicted}


def ends(cell: object) -> tuple[float, float, float, bool]:
    """Value, low, high, and whether it is exact; NaN for NULL."""
    if isinstance(cell, Estimate):
        return float(cell.value), float(cell.low), float(cell.high), cell.exact
    value = math.nan if cell is None else float(cell)  # type: ignore[arg-type]
    return value, value, value, True


def end_to_end(z: float, deletes: float, seed: int) -> Record:
    """As `coverage`, by Spark; and which of the answers are those without it."""
    found, ours = coverage(z, deletes, seed, runs=running_on_spark), coverage(z, deletes, seed)
    same = [json.dumps(a) == json.dumps(b) for a, b in zip(found["answers"], ours["answers"], strict=True)]
    return {**found, "same": same}


def pair(z: float, method: str, seed: int) -> Record:
    """The answer of one seed of two streams in equal bytes; nothing where views have no such method."""
    random = np.random.default_rng([seed, round(10 * z)])
    size = (PAIRED["domain"], PAIRED["batches"], PAIRED["rows"])
    events = {
        n: drawn(random, z, size[0], s, PAIRED["deleted"], *size[1:])
        for n, s in zip(NAMES, (0, PAIRED["shift"]), strict=True)
    }
    text = f"SELECT APPROXIMATE COUNT(*) AS n {JOIN}{METHODS[method]} SIZE {2 * PAIR_BYTES} B"
    try:
        with running({"q": (text, {})}, seed) as run:
            for batch in range(size[1]):
                run.feed(events, batch)
            seen, told, used = ends(run.asked("q")[0]["n"]), run.predicted("q"), run.method("q")
    except SkimqlError as fault:
        return {"refused": fault.code}
    return {
        "answers": [[truths(*events.values(), size[0])["COUNT"], *seen]],
        "predicted": [told],
        "method": used,
    }


# The cells of each study: what a trial is called with.
STUDIES: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "coverage": (coverage, [(z, d) for z in LAWS for d in DELETES]),
    "end_to_end": (end_to_end, [(z, d) for z in LAWS for d in DELETES]),
    "pairs": (pair, [(z, m) for z in (1.0,) for m in METHODS]),
}


def most_misses(trials: int, cells: int) -> int:
    """The least k with ``P[Bin(trials, 0.05) > k] <= 0.01 / cells``."""
    return next(
        k for k in range(trials + 1) if bdtrc(k, trials, 1 - CONFIDENCE) <= FALSE_ALARM / cells or k == trials
    )


def coverage_records(trials: Iterable[Record]) -> list[Record]:
    """A record for each law, share of deletions, window and aggregate."""
    cells: dict[tuple[Any, ...], dict[int, list[list[Any]]]] = defaultdict(lambda: defaultdict(list))
    told: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for t in trials:
        for aggregate, window, *answer in t["answers"]:
            cells[(*t["cell"], window, aggregate)][t["seed"]].append(answer)
        first = [a for a in t["answers"] if a[:2] == ["COUNT", "landmark"]]
        for answer, predicted in zip(first, t["predicted"], strict=False):
            half = (answer[7] - answer[6]) / 2
            if predicted and half and math.isfinite(half):
                told[(*t["cell"], "landmark", "COUNT")].append(predicted / half)
    checks = BATCHES // EVERY
    found = [
        _coverage_record(cell, seeds, told[cell], len(cells) * (checks + 1)) for cell, seeds in cells.items()
    ]
    return sorted(found, key=lambda r: (r["z"], r["window"], r["deletes"], r["aggregate"]))


def _coverage_record(
    cell: tuple[Any, ...], seeds: dict[int, list[list[Any]]], told: list[float], cells: int
) -> Record:
    z, deletes, window, aggregate = cell
    shares, at, wrong, undecided = [], defaultdict(list), 0, 0
    places: dict[tuple[int, int | None], list[tuple[float, float]]] = defaultdict(list)
    for answers in seeds.values():
        own: dict[int, list[bool]] = defaultdict(list)
        for batch, start, truth, value, low, high, exact in answers:
            if math.isnan(truth) or (not exact and not math.isfinite(high - low)):
                undecided += 1
                continue
            slack = 1e-9 * abs(truth)
            missed = not low - slack <= truth <= high + slack
            if exact:
                wrong += missed
                continue
            own[batch].append(missed)
            places[batch, start].append((value - truth, (high - low) / 2))
        if own:
            shares.append(np.mean([m for ms in own.values() for m in ms]))
        for batch, missed_there in own.items():
            at[batch].append(np.mean(missed_there))
    ratios = [r for r in map(_width_over_rmse, places.values()) if r is not None]
    # Sums of shares: exact counts of seeds where an answer has one interval.
    misses, worst = float(np.sum(shares)), max((float(np.sum(s)) for s in at.values()), default=0.0)
    allowed = most_misses(len(shares), cells)
    ratio = float(np.median(ratios)) if ratios else None
    return {
        "study": "coverage",
        "aggregate": aggregate,
        "window": window,
        "deletes": deletes,
        "z": z,
        "seeds": len(shares),
        "misses": round(misses, 2),
        "misses_of_a_batch": round(worst, 2),
        "allowed": allowed,
        "wrong_and_exact": wrong,
        "undecided": undecided,
        "holds": max(misses, worst) <= allowed and not wrong,
        "width_over_rmse": None if ratio is None else round(ratio, 2),
        "width_bar": LAWS.get(z),
        "narrow": None if ratio is None else ratio <= LAWS.get(z, 6.0),
        "predicted_within_2": _within_2(told),
    }


def _width_over_rmse(seen: Sequence[tuple[float, float]]) -> float | None:
    """The median half-width over the root mean square error, of one moment over all seeds."""
    errors, halves = np.array(seen).T
    rmse = float(np.sqrt(np.mean(errors**2)))
    return float(np.median(halves)) / rmse if rmse and len(seen) > 1 else None


def _within_2(ratios: Sequence[float]) -> float | None:
    """The share of predictions within 2 x of the realised half-width; None where there are none."""
    return float(np.mean([0.5 <= r <= 2 for r in ratios])) if ratios else None


def pair_records(trials: Iterable[Record]) -> list[Record]:
    """A record for each method, beside the hash sketch of the same seeds."""
    found: dict[tuple[float, str], dict[int, Record]] = defaultdict(dict)
    for t in trials:
        if "answers" in t:
            found[tuple(t["cell"])][t["seed"]] = t
    methods = list(found)
    records = []
    for (z, method), own in methods_first(found):
        seen = np.array([t["answers"][0][:4] for _, t in sorted(own.items())], np.float64)
        truth, value, low, high = seen.T
        errors, halves = np.abs(value - truth) / truth, (high - low) / 2 / truth
        hashed = found.get((z, "hash"), {})
        both = [s for s in own if s in hashed]
        of_hash = (
            _mean_error([own[s] for s in both]) / _mean_error([hashed[s] for s in both]) if both else None
        )
        told = [
            t["predicted"][0] / ((t["answers"][0][3] - t["answers"][0][2]) / 2)
            for t in own.values()
            if t["predicted"][0]
        ]
        misses, allowed = int(np.sum((truth < low) | (truth > high))), most_misses(len(own), len(methods))
        rmse = float(np.sqrt(np.mean(errors**2)))
        records.append(
            {
                "study": "pairs",
                "aggregate": "COUNT",
                "window": "landmark",
                "deletes": PAIRED["deleted"],
                "z": z,
                "shift": PAIRED["shift"],
                "bytes_each": PAIR_BYTES,
                "asked": method,
                "method": next(iter(own.values()))["method"],
                "seeds": len(own),
                "misses": misses,
                "allowed": allowed,
                "holds": misses <= allowed,
                "mean_relative_error": round(float(np.mean(errors)), 4),
                "of_hash": None if of_hash is None else round(of_hash, 3),
                "width_over_rmse": round(float(np.median(halves)) / rmse, 2) if rmse else None,
                "predicted_within_2": _within_2(told),
            }
        )
    return records


def methods_first(found: dict[tuple[float, str], Any]) -> Iterator[tuple[tuple[float, str], Any]]:
    """In the order of the command."""
    return iter(sorted(found.items(), key=lambda item: (item[0][0], list(METHODS).index(item[0][1]))))


def _mean_error(trials: Sequence[Record]) -> float:
    return float(np.mean([abs(t["answers"][0][1] - t["answers"][0][0]) / t["answers"][0][0] for t in trials]))


def records_of(trials: Sequence[Record]) -> list[Record]:
    """All records of the trials that there are."""
    by_study = {s: [t for t in trials if t["study"] == s] for s in STUDIES}
    spark = (dict(record, study="end_to_end") for record in coverage_records(by_study["end_to_end"]))
    same = [s for t in by_study["end_to_end"] for s in t["same"]]
    told = [{"study": "same", "answers": len(same), "same": sum(same), "holds": all(same)}] if same else []
    return [*coverage_records(by_study["coverage"]), *pair_records(by_study["pairs"]), *spark, *told]


def run(studies: Sequence[str], seeds: Iterable[int], kept: Path) -> list[Record]:
    """The trials that are in a file, and those that were not yet, which it then has."""
    trials = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(t["study"], tuple(t["cell"]), t["seed"]) for t in trials}
    with kept.open("a") as file:
        for seed in seeds:
            for study in studies:
                trial, cells = STUDIES[study]
                for cell in cells:
                    if (study, cell, seed) in done:
                        continue
                    found = {"study": study, "cell": cell, "seed": seed, **trial(*cell, seed)}
                    trials.append(json.loads(json.dumps(found)))
                    file.write(json.dumps(found) + "\n")
                    file.flush()
    return trials


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seeds", default="0:60", help="FIRST:LAST, without the last")
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=["coverage", "pairs"])
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    trials = run(options.studies, range(first, last), options.json.with_suffix(".seeds.jsonl"))
    found = records_of(trials)
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    for record in found:
        print(record)
    return 0 if all(r["holds"] for r in found) else 1


if __name__ == "__main__":
    sys.exit(main())
