"""What a DataFrame's tuples come from, and whether that has changed: files, constants, versions of tables.

Where something else is among its sources (a database, an RDD, a function of chance), nobody can tell.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from pyspark.sql import DataFrame

from ..catalog.form import SourceState
from ..spark.isolation import is_classic
from ..spark.java_faults import Py4JError
from ..spark.session import SPARK_FAULTS
from .listing import files_under, local_path, path_or_uri
from .plan_facts import CONSTANT, RELATION, VIEW, PlanFacts, plan_facts

# Nodes on the way from a table to its files, and those that leave out no tuple.
_TABLE = frozenset(("SubqueryAlias", RELATION))
_WHOLE = _TABLE | {VIEW, "Project"}


@dataclass(frozen=True, slots=True)
class Sources:
    """What a DataFrame is read from.

    Attributes
    ----------
    files : tuple of str
        By path or URI, sorted.
    formats : frozenset of str
        Of the files, as Spark names them.
    state : SourceState
    whole : bool
        Whether every tuple of the files is a tuple of it.
    is_bare : callable
        See `bare`; asks Spark.
    """

    files: tuple[str, ...]
    formats: frozenset[str]
    state: SourceState
    whole: bool = False
    is_bare: Callable[[], bool] = field(default=lambda: False, compare=False)

    @property
    def bare(self) -> bool:
        """Whether its columns are those of the files, as they stand there."""
        return self.is_bare()


def sources_of(frame: DataFrame, told: Callable[[DataFrame], PlanFacts] | None = None) -> Sources:
    """What a DataFrame is read from, without a job; `told` asks a classic one's plan, by default over py4j."""
    try:
        if is_classic(frame.sparkSession):
            return _of_plan((told or plan_facts)(frame))
        # Spark Connect tells the files alone.
        return _unknown(tuple(sorted(map(path_or_uri, frame.inputFiles()))))
    except (*SPARK_FAULTS, Py4JError, TypeError, AttributeError):
        return _unknown(())


def _unknown(files: tuple[str, ...]) -> Sources:
    return Sources(files, frozenset(), SourceState("other", None, None, False))


def _of_plan(plan: PlanFacts) -> Sources:
    files: set[str] = set()
    roots: set[str] = set()
    formats: set[str] = set()
    versions: list[str] = []
    complete = plan.deterministic
    for leaf in plan.leaves:
        if leaf.name in CONSTANT:
            continue
        if leaf.relation is not None:
            files |= set(map(path_or_uri, leaf.relation.files))
            roots |= set(map(path_or_uri, leaf.relation.roots))
            formats.add(leaf.relation.format)
            continue
        complete = complete and leaf.version is not None
        versions.append(f"{leaf.node} {leaf.version}")
    chain = set(plan.chain) if [leaf.name for leaf in plan.leaves] == [RELATION] else None
    is_table = chain is not None and chain <= _TABLE and plan.in_catalog
    listed = {path for root in roots for path in files_under(root)} if all(map(local_path, roots)) else None
    state = SourceState(
        "table" if is_table else "other",
        None if is_table else _digest(plan.canonical(), versions),
        tuple(sorted(roots)) if listed == files else None,
        complete,
    )
    once = all(_is_once(leaf.relation.roots) for leaf in plan.leaves if leaf.relation is not None)
    whole = chain is not None and complete and chain <= _WHOLE and once
    # A view of a text may rename and cast; one of a DataFrame is that under another name.
    bare = chain is not None and chain <= _TABLE | {VIEW} and plan.settled and once
    is_bare = cache(lambda: bare and not plan.is_cached())
    return Sources(tuple(sorted(files)), frozenset(formats), state, whole, is_bare)


def _is_once(roots: tuple[str, ...]) -> bool:
    """Whether no file is read twice, as one is that is named twice, or beside its folder."""
    ordered = sorted(root.rstrip("/") + "/" for root in roots)
    return not any(b.startswith(a) for a, b in pairwise(ordered))


def _digest(canonical: str, versions: list[str]) -> str:
    return hashlib.sha256("\n".join([canonical, *versions]).encode()).hexdigest()[:32]


def stamps(paths: tuple[str, ...]) -> tuple[tuple[str, int, int], ...] | None:
    """Path, time of change and size of local files; None where one is elsewhere or gone."""
    found = []
    for path in paths:
        local = local_path(path)
        try:
            if local is None:
                return None
            told = os.stat(local)
        except OSError:
            return None
        found.append((path, told.st_mtime_ns, told.st_size))
    return tuple(found)
