"""What a file of records comes to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from .cells import faults_of, most, pooled

ANSWERS = 300  # of a cell, for which the bounds are told
POOLED = 0.055  # of the ordinary classes together
MET = 0.95  # of their answers, at least
WIDEST = 2.5  # median half-width over the root mean square error, of ordinary classes
MOST_EXACT_RUNS = 1.3  # CPU of an answer end to end over that of the exact run
FORESEEN = 0.95  # of the answers whose half-width was predicted, within a factor of two
AIMED = (
    "first",
    "planned",
    "distinct",
    "sql",
    "sql, all in one",
)  # routes that take what reaches the asked error


def line(record: Mapping[str, Any]) -> str:
    """A record as a line."""
    states = " ".join(f"{k} {v}" for k, v in record["states"].items() if v)
    covered = "   -" if not record["sampled"] else f"{record['covered']:.2f}"
    bias = "     -" if record["bias"] is None else f"{record['bias']:+.3f}"
    return (
        f"{record['class']:24} {record['aggregate']:15} {record['error_asked']:4.0%} {record['route']:9} "
        f"{record['method']:17} covered {covered} wrong&met {record['wrong_and_met']:3}/{record['sampled']:<3} "
        f"certified {record['certified']:3} (missed {record['certified_missed']}) bias {bias} [{states}]"
    )


def cell_line(record: Mapping[str, Any], cells: int) -> str:
    """A cell as a line: its misses with the most that there may be of each, and how wide it was and was foretold."""
    name = f"{record['class']:24} {record['aggregate']:16} {record['error_asked']:4.0%} {record['route']:13}"
    if record["refused"]:
        return f"{name} {record['refused']}"
    if not record["sampled"]:
        return f"{name} exact ({record['seeds']} seeds)"
    misses = [
        f"{record[what]}/{most(record[of], share, cells)} of {record[of]}"
        for what, of, share in (
            ("wrong_and_met", "sampled", 0.05),
            ("certified_missed", "certified", 0.05),
            ("uncertified_missed", "uncertified", 0.10),
        )
    ]
    states = record["states"]
    met = (states["met"] + states["exact"]) / record["seeds"]
    unknown = states["unknown"] / record["seeds"]
    return (
        f"{name} wrong and met {misses[0]}, certified and missed {misses[1]}, uncertified and missed {misses[2]};"
        f" met or exact {met:.2f}, unknown {unknown:.2f}, half-width / RMSE {_told(record, 'half_width_over_rmse')},"
        f" predicted within 2 x {_told(record, 'predicted_within_2')}"
    )


def _told(record: Mapping[str, Any], name: str) -> str:
    return "-" if record[name] is None else f"{record[name]:.2f}"


def summary(records: Sequence[Mapping[str, Any]], *, cells: bool = False) -> int:
    """Print the cells that break the promise, kind by kind, and the pooled rates; 1 where there are any.

    `cells`: every cell before.
    """
    records = pooled(records)
    number = max(len(records), 1)
    for record in records if cells else ():
        print(cell_line(record, number))
    broken: dict[str, list[tuple[Mapping[str, Any], list[str]]]] = defaultdict(list)
    for record in records:
        faults = faults_of(record, number)
        if faults:
            broken[record["kind"]].append((record, faults))
    for kind, own in sorted(broken.items()):
        print(f"\n{kind}: {len(own)} of {sum(r['kind'] == kind for r in records)} cells")
        for record, faults in sorted(own, key=lambda c: (c[0]["class"], c[0]["route"], c[0]["aggregate"])):
            print(" ", line(record), *faults, sep="  ")
    refused = defaultdict(int)
    for record in records:
        if record["refused"]:
            refused[record["class"], record["aggregate"], record["route"], record["refused"]] += 1
    for what, times in refused.items():
        print("refused", times, *what)
    print()
    bad = sum(map(len, broken.values())) + _pooled(records) + _end_to_end(records)
    wrong, missed = most(ANSWERS, 0.05, number), most(ANSWERS, 0.10, number)
    print(
        f"at most {wrong} of {ANSWERS} met and wrong, or certified and missed; {missed} uncertified and missed"
    )
    print(f"{sum(map(len, broken.values()))} of {len(records)} cells break the promise")
    return 1 if bad else 0


def _end_to_end(records: Sequence[Mapping[str, Any]]) -> int:
    """Print what statements on Spark cost, and those that cost too much or differ from memory; how many these are."""
    own = [r for r in records if r["backend"] == "spark" and r["cpu_over_exact"] is not None]
    dear = [r for r in own if r["cpu_over_exact"] > MOST_EXACT_RUNS]
    other = [r for r in own if r["same_in_memory"] < r["compared_in_memory"]]
    for record in dear:
        print(f"{line(record)}  {record['cpu_over_exact']:.2f} x exact, {record['attempts']:.1f} attempts")
    for record in other:
        print(f"{line(record)}  as in memory {record['same_in_memory']} of {record['compared_in_memory']}")
    if own:
        ratios = [r["cpu_over_exact"] for r in own]
        print(
            f"end to end: {len(own)} cells, CPU {median(ratios):.2f} x exact (median), {max(ratios):.2f} (most)"
        )
    return len(dear) + len(other)


def _pooled(records: Sequence[Mapping[str, Any]]) -> int:
    """Print the rates over all cells of a route; how many of those of ordinary classes are too large."""
    bad = 0
    for route in sorted({r["route"] for r in records}):
        for name in ("ordinary", "hostile"):
            chosen = [
                r
                for r in records
                if r["route"] == route and (r["kind"] == "ordinary") == (name == "ordinary")
            ]
            total = sum(r["sampled"] for r in chosen)
            if not total:
                continue
            wrong = sum(r["wrong_and_met"] for r in chosen) / total
            certified = sum(r["certified"] for r in chosen)
            missed = sum(r["certified_missed"] for r in chosen) / max(certified, 1)
            covered = sum(r["sampled"] * r["covered"] for r in chosen if r["sampled"]) / total
            states = {s: sum(r["states"][s] for r in chosen) / total for s in ("met", "unknown")}
            ratios = [r["half_width_over_rmse"] for r in chosen if r["half_width_over_rmse"] is not None]
            width = median(ratios) if ratios else float("nan")
            within = [(r["predicted_within_2"], r.get("foreseen", 0)) for r in chosen]
            told = sum(n for _, n in within)
            foreseen = float(sum((w or 0) * n for w, n in within)) / told if told else float("nan")
            silent = sum(r.get("unforeseen", 0) for r in chosen)
            answers = sum(r["seeds"] for r in chosen)
            met = sum(r["states"]["met"] + r["states"]["exact"] for r in chosen) / answers
            faults = []
            if name == "ordinary":
                faults += ["TOO MANY MISS"] * (max(wrong, missed) > POOLED)
                faults += ["TOO FEW MET"] * (route in AIMED and met < MET)
                faults += ["TOO WIDE"] * (route in AIMED and width > WIDEST)
            faults += ["BADLY PREDICTED"] * (foreseen < FORESEEN)
            faults += ["TOO OFTEN UNKNOWN"] * (silent > (1.0 - FORESEEN) * (told + silent))
            bad += len(faults)
            print(
                f"{name:8} {route:14} {total:7,} sampled answers: met {states['met']:.3f},",
                f"unknown {states['unknown']:.3f}, met and wrong {wrong:.4f}, covered {covered:.3f},",
                f"certified {certified / total:.3f} of which missed {missed:.4f},",
                f"half-width / RMSE {width:.2f}, predicted within 2 x {foreseen:.2f} of {told:,}"
                f" and unknown of {silent:,}; of all answers",
                f"{met:.3f} met or exact",
                *faults,
            )
    return bad
