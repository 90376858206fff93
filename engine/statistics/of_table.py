"""What is known of one table by now: how many tuples it has, and the statistics that its queries have gathered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..sources.tables import Tables
    from .gather import KnownStatistics


@dataclass(frozen=True, slots=True)
class Gathered:
    """Statistics of some columns of a table.

    Attributes
    ----------
    of : str
        The columns, and the filter where there is one.
    source : str
        One of `optimizer.prediction.relation.SOURCES`.
    distinct : float or None
        How many keys there are.
    seconds : float or None
        Their age.
    """

    of: str
    source: str
    distinct: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """What is known of a table.

    Attributes
    ----------
    tuples : float or None
        None where it takes a job to tell.
    gathered : tuple of Gathered
    """

    tuples: float | None
    gathered: tuple[Gathered, ...] = ()


def table_statistics(
    tables: Tables, known: KnownStatistics | None, name: str, now: float, *, spark_runs: bool
) -> TableStatistics:
    """What is known of a table without a job; without Spark no file is looked at."""
    own = known.of(name) if known is not None else []
    gathered = []
    for relation, statistics in own:
        for attribute, found in zip(relation.attributes, statistics.attributes, strict=False):
            keys = ", ".join(k.replace("`", "") for k in attribute.keys)
            where = f" where {relation.filter.replace('`', '')}" if relation.filter else ""
            gathered.append(
                Gathered(f"{keys}{where}", statistics.source, found.distinct, statistics.age(now))
            )
    tuples = next((s.scanned for _, s in own if s.scanned is not None), None)
    if tuples is None and spark_runs:
        from ..sources.files import files_of

        tuples = files_of(tables, name, tables.frame(name), count=True).tuples
    # Of what was gathered more than once the last.
    return TableStatistics(tuples, tuple({g.of: g for g in gathered}.values()))
