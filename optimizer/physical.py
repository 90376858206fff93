"""The physical plan of a query: what is tried, in which order, and when that is enough. Frozen; no Spark, no counters.

EXPLAIN prints this object, `Session.plan` returns it, and the executor runs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..parser.join_graph import Query
from .operators import Operator
from .plan import Plan

if TYPE_CHECKING:
    from .apart import TableSynopsis
    from .candidates.candidate import Choice
    from .prediction.relation import RelationStatistics


@dataclass(frozen=True, slots=True)
class Predicted:
    """What one attempt is predicted to take and to err by; NaN where nothing is known.

    Attributes
    ----------
    half_width : float
        Of the widest interval over its value; of a group of average size where the query groups. 0 where it is exact.
    seconds : float
        CPU.
    nbytes : float
        Of all state.
    half_widths : tuple of float
        The same of each aggregate of the query by itself; empty where no more than the widest is known.
    """

    half_width: float = math.nan
    seconds: float = math.nan
    nbytes: float = math.nan
    half_widths: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupValues:
    """Before anything is built: the groups of one vertex are listed and numbered."""

    vertex: int
    table: str
    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SketchJoin:
    """Synopses built in one scan a table, after the exact messages into it, and joined.

    Attributes
    ----------
    method : str
        A name of `methods`: "exact" where the messages leave nothing to be estimated.
    plan : Plan
        What is built and how it answers; of a grouped query with its groups not told apart yet.
    skim : bool
        Whether dense keys are taken out before sketches are multiplied.
    message_bytes : int or None
        Largest exact message that may be sent; None for any.
    """

    method: str
    plan: Plan
    predicted: Predicted = Predicted()
    skim: bool = False
    message_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SampleJoin:
    """The keys of one join class sampled in scan order, and the query evaluated exactly on them.

    Attributes
    ----------
    method : str
    plan : Plan
        With a `Plan.sample`.
    expected : tuple of float
        Tuples of each vertex of the query behind its filter; infinite where that is not known.
    enlarges : bool
        Whether a larger sample follows one whose interval is too wide.
    """

    method: str
    plan: Plan
    predicted: Predicted = Predicted()
    expected: tuple[float, ...] = ()
    enlarges: bool = False


@dataclass(frozen=True, slots=True)
class ApartJoin:
    """Synopses of each table by itself, built in the forms in which a catalog keeps them, and joined.

    Attributes
    ----------
    method : str
    plan : Plan
        How they answer; its synopses have their methods and sizes.
    synopses : tuple of TableSynopsis
        What is built, in one scan each.
    keeps : bool
        Whether the catalog keeps them.
    nbytes : tuple of int
        The most that each of them takes, but for entries of dense keys; empty where nobody has counted.
    """

    method: str
    plan: Plan
    synopses: tuple[TableSynopsis, ...]
    predicted: Predicted = Predicted()
    keeps: bool = False
    nbytes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MaterializedJoin:
    """Synopses from the catalog, and what has to be built beside them, joined.

    Attributes
    ----------
    plan : Plan
    names : tuple of str
        Of the materialized synopses.
    missing : tuple of int
        The synopses of the plan that are built now.
    expected : tuple of (int, int)
        Tuples and bytes of each, as the catalog tells.
    """

    plan: Plan
    names: tuple[str, ...]
    missing: tuple[int, ...] = ()
    predicted: Predicted = Predicted()
    method: str = "materialized"
    expected: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SampledQuery:
    """The user's own query, run by Spark on the keys of one join class that a sample has.

    Attributes
    ----------
    plan : Plan
        Its aggregates; nothing is built for it.
    sql : str
        What Spark runs: the query by groups and keys.
    way : int
        Over which of the classes that the query decomposes over.
    class_name : str
    rate : float
        Share of the keys; 1 is the exact run.
    tables : tuple of str
        Those that are filtered, one for each place where they stand.
    whole : tuple of str
        Those that are read as they are.
    enlarges : bool
        Whether a larger sample follows one whose interval is too wide.
    dense : tuple of int
        Keys that are there whatever their hash.
    why : str
        Why all keys are cheaper than a sample, where that is foreseen.
    """

    plan: Plan
    sql: str
    way: int
    class_name: str
    rate: float
    tables: tuple[str, ...]
    whole: tuple[str, ...] = ()
    enlarges: bool = False
    predicted: Predicted = Predicted()
    method: str = "sampled_query"
    dense: tuple[int, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class ExactRun:
    """The query as Spark runs it."""

    sql: str
    predicted: Predicted = Predicted(half_width=0.0)
    method: str = "exact_run"


@dataclass(frozen=True, slots=True)
class Nothing:
    """No tuple can join, or files tell the aggregates: the answer is known without looking at a table.

    Attributes
    ----------
    reason : str
    known : tuple of int
        The aggregates, where files tell them.
    """

    reason: str
    known: tuple[int, ...] = ()
    predicted: Predicted = Predicted(0.0, 0.0, 0.0)
    method: str = "nothing"


Attempt = SketchJoin | SampleJoin | ApartJoin | MaterializedJoin | SampledQuery | ExactRun | Nothing


@dataclass(frozen=True, slots=True)
class Attempted:
    """One attempt and what it gave.

    Attributes
    ----------
    attempt : Attempt
    outcome : str
        "met", "missed", "failed", or "shown" where no error was aimed at.
    half_width : float
        The widest interval over its value; 0 where all is exact, infinite where a value is not known at all.
    nbytes : int
    seconds : float
        Wall time.
    note : str
    operators : tuple of Operator
        What ran, with what was predicted of it: the planning before it, where there was some, and what gives the
        answer, with its inputs.
    """

    attempt: Attempt
    outcome: str
    half_width: float
    nbytes: int
    seconds: float
    note: str = ""
    operators: tuple[Operator, ...] = ()


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """How a query is answered.

    Attributes
    ----------
    query : Query
        With the types of all keys known; of a grouped query with a COUNT(*) that tells which groups are there.
    groups : tuple of GroupValues
        Of every vertex whose tuples are grouped.
    attempt : SketchJoin, SampleJoin, ApartJoin, MaterializedJoin, SampledQuery, ExactRun or Nothing
        What is run first; what follows where it is not enough is decided by what it gave.
    error : float or None
        The relative error that is aimed at.
    confidence : float
    behavior : str
        What happens where the error is missed.
    choice : Choice or None
        All candidates with their figures, where the planner chose by statistics.
    statistics : tuple of RelationStatistics
        On which it did.
    notes : tuple of str
        What a reader should know of the choice.
    """

    query: Query
    groups: tuple[GroupValues, ...]
    attempt: Attempt
    error: float | None = None
    confidence: float = 0.95
    behavior: str = "do_nothing"
    choice: Choice | None = None
    statistics: tuple[RelationStatistics, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The method of the first attempt."""
        return self.attempt.method

    @property
    def build(self) -> Plan:
        """What the first attempt builds or reads.

        Raises
        ------
        ValueError
            Where it builds nothing: the exact run, and a query of which nothing joins.
        """
        if isinstance(self.attempt, (ExactRun, Nothing)):
            raise ValueError(f"nothing is built for {self.attempt.method}")
        return self.attempt.plan
