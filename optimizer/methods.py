"""The one registry of methods: what each can answer, and whether a combination of clauses is honoured or refused.

Whoever needs to know which methods there are asks here: the settings, `USING`, the planner, the catalog, EXPLAIN, the
documentation. A combination that is not honoured is refused by `check`, with a code and a way out: none is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEVEL, PAIRS = "level", "pairs"
KEY_SAMPLE, SAMPLE_SKETCH = "key_sample", "sample_sketch"

_SUMS = frozenset(("count", "sum", "avg"))
_SPREAD = frozenset(
    "var_pop var_samp stddev_pop stddev_samp covar_pop covar_samp corr percentile percentile_approx min max".split()
)
_COUNTING = frozenset(("count_distinct",))
_WORKERS, _JVM = frozenset(("arrow",)), frozenset(("jvm",))

# Features of a query that take sketches for every group, or decide on rows by estimates.
GROUPING = frozenset(("GROUP BY", "GROUP BY over several tables", "HAVING", "ORDER BY", "LIMIT", "OFFSET"))
# Those that take synopses of distinct values.
DISTINCT = frozenset(("COUNT(DISTINCT)", "set expression"))
# What is answered beyond aggregates over one join tree, by the names of `Feature`.
ANSWERED = frozenset(("expression over aggregates", "bounds in SELECT")) | GROUPING | DISTINCT


@dataclass(frozen=True, slots=True)
class Method:
    """One way to answer, and what it can.

    Attributes
    ----------
    name : str
        As `USING`, EXPLAIN, `Answer.method` and the catalog spell it.
    what : str
        What it does, for people.
    aggregates : frozenset of str
        Functions of `Aggregate` that it estimates, and ``set`` for those over a set expression.
    named : bool
        Whether ``USING name`` asks for it.
    groups : bool
        Whether it answers GROUP BY, HAVING, ORDER BY and LIMIT.
    sized : bool
        Whether ``SIZE`` bounds it.
    error : str
        What ``ERROR WITHIN`` does: ``planned`` is sized for it by what is predicted, ``reported`` says whether it is
        met; empty where the answer is exact in any case, or no size is planned.
    stored : bool
        Whether CREATE SKETCH and `skimql.cache` keep its synopses: a kind of `engine/catalog/kinds/registry.py`.
    synopsis : bool
        Whether a synopsis of a plan is of this method; the others make their answer of several, or of none.
    candidate : bool
        Whether the planner weighs it for an error or a size.
    chosen : bool
        Whether the planner takes it of itself; the other candidates only by USING.
    statistics : bool
        Whether it needs statistics of the tables.
    attributes : str
        Join attributes of a table: ``none``, ``one`` or ``several``.
    routes : frozenset of str
        Where it runs: ``arrow``, in Python workers; ``jvm``, in Spark alone.
    linear : bool
        Whether it multiplies linear sketches, which have counters for every weight.
    streams : bool
        Whether its synopses are maintained under inserts and deletes, each table by itself.
    """

    name: str
    what: str
    aggregates: frozenset[str] = _SUMS
    named: bool = False
    groups: bool = False
    sized: bool = False
    error: str = ""
    stored: bool = False
    synopsis: bool = False
    candidate: bool = False
    chosen: bool = False
    statistics: bool = False
    attributes: str = "several"
    routes: frozenset[str] = _JVM
    linear: bool = False
    streams: bool = False


METHODS: Mapping[str, Method] = {
    m.name: m
    for m in (
        Method(
            "hash",
            "hash sketches (Fast-AGMS) of tables with one join attribute each",
            named=True,
            groups=True,
            sized=True,
            error="planned",
            stored=True,
            synopsis=True,
            candidate=True,
            chosen=True,
            attributes="one",
            routes=_WORKERS | _JVM,
            linear=True,
            streams=True,
        ),
        Method(
            "convolution",
            "convolution count sketches; of a table with one join attribute it is its hash sketch",
            named=True,
            groups=True,
            sized=True,
            error="planned",
            stored=True,
            synopsis=True,
            candidate=True,
            chosen=True,
            routes=_WORKERS | _JVM,
            linear=True,
            streams=True,
        ),
        Method(
            "agms",
            "AGMS sketches: every tuple moves every counter",
            named=True,
            groups=True,
            sized=True,
            error="planned",
            synopsis=True,
            candidate=True,
            routes=_WORKERS,
            linear=True,
            streams=True,
            stored=True,
        ),
        Method(
            "skimmed",
            "hash sketches with the dense keys taken out before they are multiplied",
            named=True,
            sized=True,
            error="planned",
            candidate=True,
            statistics=True,
            routes=_WORKERS | _JVM,
            linear=True,
            streams=True,
            stored=True,
        ),
        Method(
            "key_sample",
            "the join exactly on a sample of the keys of one join class, by their hash",
            named=True,
            sized=True,
            error="planned",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
            stored=True,
            streams=True,
        ),
        Method(
            "two_level",
            "heavy keys exactly, the others on a sample of them",
            named=True,
            sized=True,
            error="planned",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
            stored=True,
        ),
        Method(
            "sampled_messages",
            "a sample of the keys of one join class, with exact messages of the tables behind it",
            named=True,
            sized=True,
            error="planned",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
        ),
        Method(
            "exact",
            "exact messages alone: tables of few keys, joined into their neighbours",
            named=True,
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
            sized=True,
            routes=_WORKERS | _JVM,
        ),
        Method(
            "exact_run",
            "the query as Spark runs it",
            groups=True,
            candidate=True,
            chosen=True,
            statistics=True,
        ),
        Method(
            "total",
            "one table without a join, read as a whole: exact",
            groups=True,
            stored=True,
            synopsis=True,
            attributes="none",
            routes=_WORKERS | _JVM,
            streams=True,
        ),
        Method(
            "distinct",
            "level sketches of the distinct values of one table, or of sets",
            _COUNTING | {"set"},
            named=True,
            groups=True,
            sized=True,
            error="planned",
            candidate=True,
            routes=_WORKERS,
            streams=True,
            stored=True,
        ),
        Method(
            "join_distinct",
            "samples of pairs: distinct values over a join",
            _COUNTING,
            named=True,
            groups=True,
            sized=True,
            error="planned",
            candidate=True,
            routes=_WORKERS,
            streams=True,
            stored=True,
        ),
        Method(
            LEVEL,
            "a level sketch, of which distinct makes its answer",
            _COUNTING,
            synopsis=True,
            routes=_WORKERS,
        ),
        Method(
            PAIRS,
            "a pair sample, of which join_distinct makes its answer",
            _COUNTING,
            synopsis=True,
            routes=_WORKERS,
        ),
        Method("sample", "what one table adds to a sample of keys", synopsis=True),
        Method(
            "sample_sketch",
            "a sample of the keys of one join class, sketches of the tables beyond it, each table by itself",
            named=True,
            groups=True,
            sized=True,
            error="planned",
            candidate=True,
            statistics=True,
            streams=True,
            stored=True,
            routes=_WORKERS,
        ),
        Method(
            "sampled_query",
            "the user's own query, by Spark, on a sample of the keys of one join class",
            _SUMS | _SPREAD,
            named=True,
            groups=True,
            sized=True,
            error="planned",
            candidate=True,
            statistics=True,
        ),
        Method(
            "constant",
            "no tuple can meet the conditions: an exact 0, or NULL",
            _SUMS | _COUNTING,
            groups=True,
        ),
    )
}

NAMED = tuple(m.name for m in METHODS.values() if m.named)
CANDIDATES = tuple(m.name for m in METHODS.values() if m.candidate)
CHOSEN = tuple(m.name for m in METHODS.values() if m.chosen)
STORED = tuple(m.name for m in METHODS.values() if m.stored)


def counts_distinct(name: str) -> bool:
    """Whether a method estimates distinct values, and nothing else."""
    return METHODS[name].aggregates <= _COUNTING | {"set"}


def is_linear(name: str) -> bool:
    """Whether a method multiplies linear sketches, which have counters for every weight."""
    return METHODS[name].linear
