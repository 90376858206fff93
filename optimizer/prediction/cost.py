"""CPU seconds of a candidate: scans, what they do with each row, what they keep, what a join puts out, and jobs.

Constants are nanoseconds of CPU on the machine of the project's measurements (two cores, Spark 4.3, Parquet, bigint
keys, 20M rows, warm); only their proportions matter for a choice. Those marked *assumed* have not been measured by
themselves. Wall time, shuffles over a network and wide rows are not modelled. ``python -m benchmarks.costs`` measures
what is marked so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

SCAN_NS = 35.0  # scan with a hash of the key: 0.70 to 0.73 s for 20M rows
SAMPLE_NS = 4.0  # the filter of a key sample: 0.78 s at 1/256
PASSED_NS = 330.0  # each row that a sample keeps and groups: 1.17 s at 1/16 against 0.78 s at 1/256
DENSE_NS = 28.0  # `k IN (dense keys)` on every row: 1.57 s against 1.01 s
PROBE_NS = 40.0  # assumed: a broadcast join's look-up for every row, between a dense filter and grouping
GROUP_NS = 55.0  # grouping a row by a key of few values: approx_count_distinct 1.98 s less the scan
# assumed: each distinct key grouped, shuffled, collected; exact GROUP BY k took 8.96 s
GROUPED_KEY_NS = 900.0
SKETCH_JVM_NS = 50.0  # packed sign sums of a hash sketch: 1.70 s less the scan
SKETCH_ARROW_NS = 200.0  # JVM to Python and a numpy hash sketch: 4.69 s less the scan
CONVOLUTION_NS = 290.0  # two attributes: do-nothing mapInArrow 157, the kernel 127
AGMS_NS = 0.25  # each atomic sketch, for each row: 267 ns at 1,024
LEVEL_NS = 200.0  # assumed: JVM to Python 157, the kernel 40
PAIRS_NS = 350.0  # assumed: JVM to Python 157, the kernel 190
# Each entry of an exact map of distinct values or pairs, put in its place block by block, sent and read again: a
# COUNT(DISTINCT) of 10^6 pairs and 500,000 values 4.9 s, of 865,000 values of 2M tuples 4.0; as samples and levels 1.2.
MAP_ENTRY_NS = 2800.0
COUNTER_NS = 4.0  # assumed: each counter of a group's sketch, made, sent, merged and estimated with

# A tuple that a first sample keeps, for each table of the join: computed, sent, grouped in the driver, its partners
# asked for. A tuple that is scanned with the columns of filters, and one that asks whether its key is wanted. Measured
# on TPC-H at scale factor 10.
SAMPLED_NS = 700.0
SAMPLE_SCAN_NS = 60.0
WANTED_NS = 60.0
DRAWN_NS = 1000.0
COUNTED_NS = (
    20.0  # runs of keys in files, in the driver: 0.3 s for 15M keys of one tuple, 0.8 s for 60M tuples
)

# Spark's own joins (benchmarks.costs). Each joined tuple that is put out and aggregated: 2 ns counted, 5 in a sum of
# products, 3e8 tuples. Each row of either side that is sorted, shuffled and merged; a result of joins costs as much to
# join further, 375. What Spark takes for 10 MB at the most is broadcast instead; where files do not tell, a million
# rows of a key.
OUTPUT_NS = 5.0
EXACT_JOIN_NS = 400.0
BROADCAST_TUPLES, BROADCAST_BYTES = 1e6, 10 << 20

# Whatever the number of rows: a warm job, 0.1 to 0.3 s; every exchange in it, be it a shuffle or a broadcast; rows sent
# to Python workers that run already, as the tables of fewer tuples are. The last two in proportion, on a busy machine:
# a job on a few rows 0.32 s, a scan of 337,000 rows 0.46, grouped by 4,000 keys 0.68 to 0.95, through workers 0.64.
JOB_S = 0.2
EXCHANGE_S = 0.1
WORKERS_S = 0.2
BY_WORKERS_TUPLES = 4e6

# That a pilot aims at in either sample, see `pilot_counts`.
PILOT_TUPLES = 1 << 17


class Read(Protocol):
    """A table that is read: all its tuples, and those that its filter keeps."""

    @property
    def scanned(self) -> float:
        """Tuples of the table."""
        ...

    @property
    def tuples(self) -> float:
        """Tuples behind the filter."""
        ...


@dataclass(frozen=True, slots=True)
class Input:
    """A table of which no more is known than how many tuples are read and kept, and maybe for how large Spark takes it.

    `nbytes` is that of the columns that are read; None where files do not tell.
    """

    tuples: float
    scanned: float
    nbytes: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds and what they go to."""

    seconds: float
    parts: tuple[tuple[str, float], ...] = ()

    def plus(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(self.seconds + other.seconds, (*self.parts, *other.parts))


def scans(relations: Iterable[Read]) -> Cost:
    """Reading the key columns of the tables once."""
    return _cost("scan", SCAN_NS * sum(r.scanned for r in relations))


def message(relation: Read, keys: float, received: int) -> Cost:
    """Grouping a relation by its key, and collecting the map; `received` messages are looked up for each row."""
    nanoseconds = PROBE_NS * relation.tuples * received + GROUP_NS * relation.tuples + GROUPED_KEY_NS * keys
    return _cost("exact message", nanoseconds).plus(_jobs(1, exchanges=1))


def received(relation: Read, messages: int) -> Cost:
    """Looking messages up, each of them broadcast, for each row of a relation that sends none itself."""
    return _cost("look-up", PROBE_NS * relation.tuples * messages).plus(_jobs(0, exchanges=messages))


def counted(relation: Read) -> Cost:
    """The last scan of a tree that is folded into one relation: its tuples are counted, or their values added up."""
    return _made(relation, OUTPUT_NS, SKETCH_ARROW_NS)


def sample(relations: Sequence[Read], probability: float, dense: int) -> Cost:
    """Filtering every relation by hash (and for dense keys), in one job for each."""
    tuples = sum(r.tuples for r in relations)
    each = SAMPLE_NS + (DENSE_NS if dense else 0.0) + PASSED_NS * min(probability, 1.0)
    return _cost("sample", each * tuples).plus(_jobs(len(relations), exchanges=len(relations)))


def sampled_messages(members: Sequence[Read], others: Sequence[Read], kept: float, dense: int) -> Cost:
    """Filtered scans of the sampled class, and a look-up for every row of the others; `kept` rows are grouped."""
    each = SAMPLE_NS + (DENSE_NS if dense else 0.0)
    nanoseconds = each * sum(r.tuples for r in members) + PROBE_NS * sum(r.tuples for r in others)
    scanned = len(members) + len(others)
    # Behind the first scan the wanted keys are broadcast.
    jobs = _jobs(scanned, exchanges=2 * scanned - 1)
    return _cost("sampled messages", nanoseconds + PASSED_NS * kept).plus(jobs)


def sketches(relations: Sequence[Read], attributes: Sequence[int], kind: str, counters: int) -> Cost:
    """Updating a sketch of every relation; `counters` is the number of atomic sketches of AGMS."""
    cost = Cost(0.0)
    for relation, number in zip(relations, attributes, strict=True):
        if kind == "agms":
            arrow = jvm = SKETCH_ARROW_NS + AGMS_NS * counters
        else:
            arrow, jvm = (SKETCH_ARROW_NS, SKETCH_JVM_NS) if number == 1 else (CONVOLUTION_NS, CONVOLUTION_NS)
        cost = cost.plus(_made(relation, jvm, arrow))
    return cost


def _made(relation: Read, jvm: float, arrow: float) -> Cost:
    """A scan that makes sketches: by Python workers for a small table, in the JVM for a large one."""
    if relation.scanned > BY_WORKERS_TUPLES:
        return _cost("sketches", jvm * relation.tuples).plus(_jobs(1))
    return (
        _cost("sketches", arrow * relation.tuples)
        .plus(_jobs(1))
        .plus(Cost(WORKERS_S, (("workers", WORKERS_S),)))
    )


def first_sample(relations: Sequence[Read], members: Sequence[Read], kept: float) -> Cost:
    """What a first sample adds to its scans at rate 1: `kept` tuples take part, those of its class are asked."""
    nanoseconds = SAMPLED_NS * len(relations) * kept + WANTED_NS * sum(r.tuples for r in members)
    return _cost("first sample", nanoseconds)


def drawing(tuples: float) -> Cost:
    """What tuples cost that are drawn one by one, beside the scan that they come from."""
    return _cost("drawn tuples", DRAWN_NS * tuples)


def counting(tables: Sequence[float]) -> Cost:
    """What tables of so many tuples cost whose keys are counted in their files, which are in the order of them."""
    return _cost("keys counted", COUNTED_NS * sum(tables))


def jobs(number: int) -> Cost:
    """So many jobs, whatever they do."""
    return _jobs(number)


def first_scans(relations: Sequence[Read]) -> Cost:
    """The scans of a first sample: what it costs to find that it was too small."""
    return _cost("scan", SAMPLE_SCAN_NS * sum(r.scanned for r in relations)).plus(_jobs(len(relations)))


def asked_for_keys(relations: Sequence[Read]) -> Cost:
    """Tables that are asked for keys another one has met, in scans of their own: the keys are sent, all tuples look."""
    asked = _cost("keys asked for", WANTED_NS * sum(r.tuples for r in relations))
    return asked.plus(_jobs(0, exchanges=len(relations)))


def exact_join(relations: Sequence[Read], sizes: Sequence[float]) -> Cost:
    """Spark's own join of everything, one table after another.

    Parameters
    ----------
    relations : sequence of Read
        In the order in which they are joined.
    sizes : sequence of float
        Tuples of the join of the first two, of the first three, ...: each is made, and joined to the next table.

    Notes
    -----
    Without statistics on which to reorder, Spark joins in the order of the text, as far as that has conditions.
    """
    seconds, left, left_small = 0.0, relations[0].tuples, _is_broadcast(relations[0])
    for relation, size in zip(relations[1:], sizes, strict=True):
        if left_small or _is_broadcast(relation):
            each = PROBE_NS
        else:
            each = EXACT_JOIN_NS
        seconds += 1e-9 * (each * (left + relation.tuples) + OUTPUT_NS * size)
        left, left_small = size, False
    cost = scans(relations).plus(Cost(seconds, (("exact join", seconds),)))
    return cost.plus(_jobs(1, exchanges=len(relations) - 1))


def _is_broadcast(relation: Read) -> bool:
    """Whether Spark sends a table to all tasks as a whole, by its bytes where these are known."""
    if isinstance(relation, Input) and relation.nbytes is not None:
        return relation.nbytes <= BROADCAST_BYTES
    return relation.scanned <= BROADCAST_TUPLES


def listed_groups(relation: Read, groups: float) -> Cost:
    """The values of the group columns of one table: a job."""
    grouped = _cost("groups", GROUP_NS * relation.tuples + GROUPED_KEY_NS * groups)
    return scans([relation]).plus(grouped).plus(_jobs(1, exchanges=1))


def exact_groups(relations: Sequence[Read], sizes: Sequence[float], groups: float) -> Cost:
    """Spark's own run of a grouped query: its join, and each joined tuple put into its group."""
    grouped = _cost(
        "groups", GROUP_NS * (sizes[-1] if sizes else relations[0].tuples) + GROUPED_KEY_NS * groups
    )
    return exact_join(relations, sizes).plus(grouped).plus(_jobs(0, exchanges=1))


def duration_text(seconds: float) -> str:
    """CPU seconds as people read them: 2.1 hours."""
    if not math.isfinite(seconds):
        return "more than anyone waits for"
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return (
                f"{seconds / size:,.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
            )
    return f"{seconds:.2g} s"


def distinct_synopses(
    relations: Sequence[Read], kinds: Sequence[str], jobs: int, entries: float = 0.0
) -> Cost:
    """Updating a level sketch or a pair sample (``pairs``) of every relation, so many entries of all in exact maps."""
    nanoseconds = MAP_ENTRY_NS * entries + sum(
        (PAIRS_NS if kind == "pairs" else LEVEL_NS) * r.tuples
        for r, kind in zip(relations, kinds, strict=True)
    )
    return _cost("distinct synopses", nanoseconds).plus(_jobs(jobs))


def pilots(relations: Sequence[Read]) -> Cost:
    """What finding out about tables of which nothing is known costs: a job for each, two samples grouped."""
    grouped = GROUPED_KEY_NS * sum(2.0 * min(r.scanned, PILOT_TUPLES) for r in relations)
    return (
        scans(relations).plus(_cost("pilot", grouped)).plus(_jobs(len(relations), exchanges=len(relations)))
    )


def exact_distinct(relations: Sequence[Read], sizes: Sequence[float], values: Sequence[float]) -> Cost:
    """Spark's own join, if there is one, and its grouping of each count's distinct `values`."""
    tuples = sizes[-1] if sizes else sum(r.tuples for r in relations)
    nanoseconds = sum(GROUP_NS * tuples + GROUPED_KEY_NS * v for v in values)
    cost = _cost("exact distinct", nanoseconds)
    if not sizes:
        return cost.plus(scans(relations)).plus(_jobs(1))
    return cost.plus(exact_join(relations, sizes))


def _jobs(number: int, exchanges: int = 0) -> Cost:
    seconds = JOB_S * number + EXCHANGE_S * exchanges
    return Cost(seconds, (("jobs", seconds),))


def _cost(name: str, nanoseconds: float) -> Cost:
    return Cost(nanoseconds * 1e-9, ((name, nanoseconds * 1e-9),))
