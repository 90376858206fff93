"""CPU seconds of a candidate: scans, what they do with each row, what they keep, and jobs.

Constants are nanoseconds of CPU on the machine of the project's measurements (two cores, Spark 4.3, Parquet, bigint
keys, 20M rows, warm); only their proportions matter for a choice. Those marked *assumed* have not been measured by
themselves. Wall time, shuffles over a network and wide rows
are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .relation import Relation

SCAN_NS = 35.0  # scan with a hash of the key: 0.70 to 0.73 s for 20M rows
SAMPLE_NS = 4.0  # the filter of a key sample: 0.78 s at 1/256
KEPT_NS = 330.0  # each row that a sample keeps and groups: 1.17 s at 1/16 against 0.78 s at 1/256
DENSE_NS = 28.0  # `k IN (dense keys)` on every row: 1.57 s against 1.01 s
PROBE_NS = 40.0  # assumed: a broadcast join's look-up for every row, between a dense filter and grouping
GROUP_NS = 55.0  # grouping a row by a key of few values: approx_count_distinct 1.98 s less the scan
GROUPED_KEY_NS = (
    900.0  # assumed: each distinct key grouped, shuffled, collected; exact GROUP BY k took 8.96 s
)
SKETCH_JVM_NS = 50.0  # packed sign sums of a hash sketch: 1.70 s less the scan
SKETCH_ARROW_NS = 200.0  # JVM to Python and a numpy hash sketch: 4.69 s less the scan
CONVOLUTION_NS = 290.0  # two attributes: do-nothing mapInArrow 157, the kernel 127
AGMS_NS = 0.25  # each atomic sketch, for each row: 267 ns at 1,024
OUTPUT_NS = 20.0  # assumed: each joined tuple that Spark's exact join puts out and aggregates
MOST_OUTPUT = 1e10  # joined tuples; with more an exact run is not started
EXACT_JOIN_NS = 400.0  # Spark's exact join, for each input row of 7.5M: 1.7 times the sketches' CPU
JOB_S = 0.2  # a warm job: 0.1 to 0.3 s


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds and what they go to."""

    seconds: float
    parts: tuple[tuple[str, float], ...] = ()

    def plus(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(self.seconds + other.seconds, (*self.parts, *other.parts))


def scans(relations: Iterable[Relation]) -> Cost:
    """Reading the key columns of the tables once."""
    return _cost("scan", SCAN_NS * sum(r.scanned for r in relations))


def message(relation: Relation, keys: float, received: int) -> Cost:
    """Grouping a relation by its key, and collecting the map; `received` messages are looked up for each row."""
    nanoseconds = PROBE_NS * relation.tuples * received + GROUP_NS * relation.tuples + GROUPED_KEY_NS * keys
    return _cost("exact message", nanoseconds).plus(_jobs(1))


def received(relation: Relation, messages: int) -> Cost:
    """Looking messages up for each row of a relation that sends none itself."""
    return _cost("look-up", PROBE_NS * relation.tuples * messages)


def sample(relations: Sequence[Relation], probability: float, dense: int) -> Cost:
    """Filtering every relation by hash (and for dense keys), in one job for each."""
    tuples = sum(r.tuples for r in relations)
    each = SAMPLE_NS + (DENSE_NS if dense else 0.0) + KEPT_NS * min(probability, 1.0)
    return _cost("sample", each * tuples).plus(_jobs(len(relations)))


def sampled_messages(
    members: Sequence[Relation], others: Sequence[Relation], kept: float, dense: int
) -> Cost:
    """Filtered scans of the sampled class, and a look-up for every row of the others; `kept` rows are grouped."""
    each = SAMPLE_NS + (DENSE_NS if dense else 0.0)
    nanoseconds = each * sum(r.tuples for r in members) + PROBE_NS * sum(r.tuples for r in others)
    return _cost("sampled messages", nanoseconds + KEPT_NS * kept).plus(_jobs(len(members) + len(others)))


def sketches(relations: Sequence[Relation], attributes: Sequence[int], kind: str, counters: int) -> Cost:
    """Updating a sketch of every relation; `counters` is the number of atomic sketches of AGMS."""
    nanoseconds = 0.0
    for relation, number in zip(relations, attributes, strict=True):
        if kind == "agms":
            each = SKETCH_ARROW_NS + AGMS_NS * counters
        else:
            each = SKETCH_JVM_NS if number == 1 else CONVOLUTION_NS
        nanoseconds += each * relation.tuples
    return _cost("sketches", nanoseconds).plus(_jobs(len(relations)))


def exact_join(relations: Sequence[Relation], output: float) -> Cost:
    """Spark's own join of everything; `output` is the number of joined tuples, each of which is made."""
    nanoseconds = EXACT_JOIN_NS * sum(r.tuples for r in relations) + OUTPUT_NS * output
    return _cost("exact join", nanoseconds).plus(_jobs(1))


def _jobs(number: int) -> Cost:
    return Cost(JOB_S * number, (("jobs", JOB_S * number),))


def _cost(name: str, nanoseconds: float) -> Cost:
    return Cost(nanoseconds * 1e-9, ((name, nanoseconds * 1e-9),))
