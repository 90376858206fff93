"""What a DataFrame's tuples come from, and whether that has changed: files, constants, versions of tables.

Where something else is among its sources (a database, an RDD, a function of chance), nobody can tell.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from ..catalog.form import SourceState
from ..spark.isolation import is_classic
from ..spark.java_faults import Py4JError
from ..spark.session import SPARK_FAULTS
from .listing import files_under, local_path, path_or_uri

# Leaves of a plan that are the same for ever.
_CONSTANT = frozenset(("LocalRelation", "OneRowRelation", "Range", "CommandResult", "EmptyRelation"))
# Nodes on the way from a table to its files, and those that leave out no tuple.
_FILES, _VIEW = "LogicalRelation", "View"
_TABLE = frozenset(("SubqueryAlias", _FILES))
_WHOLE = _TABLE | {_VIEW, "Project"}


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
    bare : bool
        Whether its columns are those of the files, as they stand there.
    """

    files: tuple[str, ...]
    formats: frozenset[str]
    state: SourceState
    whole: bool = False
    bare: bool = False


def sources_of(frame: DataFrame) -> Sources:
    """What a DataFrame is read from, without a job."""
    try:
        if is_classic(frame.sparkSession):
            return _analysed(frame)
        # Spark Connect tells the files alone.
        return _unknown(tuple(sorted(map(path_or_uri, frame.inputFiles()))))
    except (*SPARK_FAULTS, Py4JError, TypeError, AttributeError):
        return _unknown(())


def _unknown(files: tuple[str, ...]) -> Sources:
    return Sources(files, frozenset(), SourceState("other", None, None, False))


def _analysed(frame: DataFrame) -> Sources:
    plan = frame._jdf.queryExecution().analyzed()
    files: set[str] = set()
    roots: set[str] = set()
    formats: set[str] = set()
    versions: list[str] = []
    complete, names = bool(plan.deterministic()), []
    nodes = list(_chain(plan))
    for name, leaf in _leaves(plan, *nodes[-1]):
        names.append(name)
        if name in _CONSTANT:
            continue
        relation = leaf.relation() if name == _FILES else None
        if relation is not None and relation.getClass().getSimpleName() == "HadoopFsRelation":
            location = relation.location()
            files |= {path_or_uri(str(f)) for f in location.inputFiles()}
            roots |= {path_or_uri(r) for r in location.rootPaths().mkString("\0").split("\0") if r}
            formats.add(str(relation.fileFormat().toString()))
            continue
        version = _version(leaf)
        complete = complete and version is not None
        versions.append(f"{leaf.nodeName()} {version}")
    chain = {name for name, _ in nodes} if names == [_FILES] else None
    is_table = chain is not None and chain <= _TABLE and bool(nodes[-1][1].catalogTable().isDefined())
    listed = {path for root in roots for path in files_under(root)} if all(map(local_path, roots)) else None
    state = SourceState(
        "table" if is_table else "other",
        None if is_table else _digest(plan, versions),
        tuple(sorted(roots)) if listed == files else None,
        complete,
    )
    whole = chain is not None and complete and chain <= _WHOLE
    # A view of a text may rename and cast; one of a DataFrame is that under another name.
    bare = chain is not None and chain <= _TABLE | {_VIEW}
    bare = bare and all(node.isTempViewStoringAnalyzedPlan() for name, node in nodes if name == _VIEW)
    bare = bare and not _is_cached(frame)
    return Sources(tuple(sorted(files)), frozenset(formats), state, whole, bare)


def _is_cached(frame: DataFrame) -> bool:
    """Whether some of it is in Spark's cache, which may be of files as they were."""
    plan = frame._jdf.queryExecution().withCachedData()
    return any(_name(leaf) == "InMemoryRelation" for leaf in _items(plan.collectLeaves()))


def _leaves(plan: Any, last: str, node: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of a plan and of the subqueries in it, with their names; `node` ends the chain from its root."""
    if last == _FILES:
        yield last, node
    else:
        yield from ((_name(leaf), leaf) for leaf in _items(plan.collectLeaves()))
    for inner in _items(plan.subqueriesAll()):
        yield from ((_name(leaf), leaf) for leaf in _items(inner.collectLeaves()))


def _items(sequence: Any) -> Iterator[Any]:
    for number in range(sequence.size()):
        yield sequence.apply(number)


def _chain(plan: Any) -> Iterator[tuple[str, Any]]:
    """The nodes from the root down with their names, while each has one child."""
    while True:
        yield (name := _name(plan)), plan
        if name == _FILES:
            return
        children = plan.children()
        if children.size() != 1:
            return
        plan = children.apply(0)


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName()).rstrip("$")


def _version(leaf: Any) -> str | None:
    """The version of a table, where its source tells one."""
    try:
        told = leaf.table().version()
    except (Py4JError, TypeError, AttributeError):
        return None
    return None if told is None else str(told)


def _digest(plan: Any, versions: list[str]) -> str:
    """What tells one plan from another: Spark's hash has the constants in it, its text the expressions."""
    canonical = plan.canonicalized()
    text = "\n".join([str(canonical.hashCode()), str(canonical.toString()), *versions])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


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
