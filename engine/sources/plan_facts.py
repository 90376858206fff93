"""What the analysed plan of a DataFrame tells of where its tuples come from, asked over py4j node by node.

A call costs a quarter of a millisecond, and a view of a file takes thirty of them. So what a plan told is remembered by
its hash and text, and these of each DataFrame, whose plan stays as it is; but for the files that it reads, which its
relations list anew after REFRESH TABLE: three calls each. The Spark SQL extension asks the same in one call of its jar
(`SourceFacts.java`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from ..spark.java_faults import Py4JError

# A node that stands for files or for rows of a data source, and one that stands for a view.
RELATION, VIEW = "LogicalRelation", "View"
_OF_FILES = "HadoopFsRelation"
# Plans that are remembered.
MOST_KNOWN = 64
# Leaves that are the same for ever.
CONSTANT = frozenset(("LocalRelation", "OneRowRelation", "Range", "CommandResult", "EmptyRelation"))


@dataclass(frozen=True, slots=True)
class FileRelation:
    """A relation of files: their URIs, those of the folders (or files) that were asked for, and their format."""

    files: tuple[str, ...]
    roots: tuple[str, ...]
    format: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a plan: name of its class, name of the node, version of its table, and the files that it reads."""

    name: str
    node: str
    version: str | None
    relation: FileRelation | None


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What an analysed plan tells.

    Attributes
    ----------
    deterministic : bool
    chain : tuple of str
        Names of the nodes from the root down, while each has one child.
    in_catalog : bool
        Whether the end of the chain is a table of Spark's catalog.
    settled : bool
        Whether every view in the chain is of a DataFrame, and none of a text.
    leaves : tuple of Leaf
        Of the plan and of the subqueries in it.
    is_cached : callable
        Whether some of it is in Spark's cache, which may be of files as they were.
    canonical : callable
        What tells one plan from another: Spark's hash, which has the constants in it, and the canonical text.
    """

    deterministic: bool
    chain: tuple[str, ...]
    in_catalog: bool
    settled: bool
    leaves: tuple[Leaf, ...]
    is_cached: Callable[[], bool]
    canonical: Callable[[], str]


class KnownPlans:
    """What the plans of one JVM have told, the latest of them, by their texts.

    An attribute has a number that is given once in a JVM, so that plans of one text and one hash are the same. Not of
    plans whose leaves may be of another version tomorrow.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[PlanFacts, tuple[Any, ...]]] = OrderedDict()
        # Of each DataFrame that is still there the text of its plan.
        self._texts: WeakKeyDictionary[DataFrame, str] = WeakKeyDictionary()
        self._jvm: Any = None
        self._wrapped: Callable[[Any], Any]

    def facts(self, frame: DataFrame) -> PlanFacts:
        """As `plan_facts`."""
        self._follow(frame.sparkSession._jvm)
        text = self._texts.get(frame)
        if text is None:
            text = self._texts[frame] = _told_apart(frame._jdf.queryExecution().analyzed())
        if text not in self._known:
            execution = frame._jdf.queryExecution()
            facts, locations = _facts(execution, execution.analyzed())
            if "#" not in text or any(
                leaf.relation is None and leaf.name not in CONSTANT for leaf in facts.leaves
            ):
                return facts
            self._known[text] = facts, locations
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
            return facts
        self._known.move_to_end(text)
        facts, locations = self._known[text]
        leaves = tuple(
            leaf
            if leaf.relation is None
            else replace(leaf, relation=replace(leaf.relation, files=self._files(location)))
            for leaf, location in zip(facts.leaves, locations, strict=True)
        )
        return replace(facts, leaves=leaves, is_cached=lambda: _is_cached(frame._jdf.queryExecution()))

    def _follow(self, jvm: Any) -> None:
        """Forget what another JVM has told."""
        if jvm is not self._jvm:
            self._known.clear()
            # Looked for once: py4j asks for each part of a class's name whether it is a class.
            self._wrapped = jvm.scala.Predef.genericWrapArray
            self._jvm = jvm

    def _files(self, location: Any) -> tuple[str, ...]:
        """The files that are listed now, in three calls however many they are."""
        listed = self._wrapped(location.inputFiles()).mkString("\0")
        return tuple(f for f in str(listed).split("\0") if f)


def plan_facts(frame: DataFrame) -> PlanFacts:
    """What the analysed plan of a classic DataFrame tells, without a job."""
    execution = frame._jdf.queryExecution()
    return _facts(execution, execution.analyzed())[0]


def _facts(execution: Any, plan: Any) -> tuple[PlanFacts, tuple[Any, ...]]:
    """What a plan tells, and where the files of each leaf are listed; None of leaves without."""
    nodes = list(_chain(plan))
    names = tuple(name for name, _ in nodes)
    last, node = nodes[-1]
    found = [(last, node)] if last == RELATION else _leaves(plan)
    inner = [leaf for query in _items(plan.subqueriesAll()) for leaf in _leaves(query)]
    leaves = [_leaf(*leaf) for leaf in (*found, *inner)]
    facts = PlanFacts(
        bool(plan.deterministic()),
        names,
        last == RELATION and bool(node.catalogTable().isDefined()),
        all(node.isTempViewStoringAnalyzedPlan() for name, node in nodes if name == VIEW),
        tuple(leaf for leaf, _ in leaves),
        lambda: _is_cached(execution),
        cache(lambda: _told_apart(plan.canonicalized())),
    )
    return facts, tuple(location for _, location in leaves)


def _is_cached(execution: Any) -> bool:
    return any(name == "InMemoryRelation" for name, _ in _leaves(execution.withCachedData()))


def _told_apart(plan: Any) -> str:
    """Hash and text of a plan: Spark cuts the text of long lists short, and the hash has all constants in it."""
    return f"{plan.hashCode()}\n{plan.toString()}"


def _leaf(name: str, node: Any) -> tuple[Leaf, Any]:
    if name in CONSTANT:
        return Leaf(name, name, None, None), None
    relation = node.relation() if name == RELATION else None
    if relation is None or relation.getClass().getSimpleName() != _OF_FILES:
        return Leaf(name, str(node.nodeName()), _version(node), None), None
    location = relation.location()
    roots = str(location.rootPaths().mkString("\0")).split("\0")
    return Leaf(
        name,
        name,
        None,
        FileRelation(
            tuple(map(str, location.inputFiles())),
            tuple(root for root in roots if root),
            str(relation.fileFormat().toString()),
        ),
    ), location


def _version(leaf: Any) -> str | None:
    """The version of a table, where its source tells one."""
    try:
        told = leaf.table().version()
    except (Py4JError, TypeError, AttributeError):
        return None
    return None if told is None else str(told)


def _chain(plan: Any) -> Iterator[tuple[str, Any]]:
    """The nodes from the root down with their names, while each has one child."""
    while True:
        yield (name := _name(plan)), plan
        if name == RELATION:
            return
        children = plan.children()
        if children.size() != 1:
            return
        plan = children.apply(0)


def _leaves(plan: Any) -> list[tuple[str, Any]]:
    return [(_name(leaf), leaf) for leaf in _items(plan.collectLeaves())]


def _items(sequence: Any) -> Iterator[Any]:
    for number in range(sequence.size()):
        yield sequence.apply(number)


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName()).rstrip("$")
