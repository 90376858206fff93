"""The operators of an attempt, with what is predicted of each: by statistics, the plan's sizes and the cost model.

Nothing of the predictions is loaded for what comes from a catalog.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .operators import (
    ESTIMATE,
    EXACT_RUN,
    GROUPS,
    LOAD,
    MESSAGE,
    PLANNING,
    RELATION,
    SAMPLE,
    SCAN,
    Figures,
    Operator,
    beside,
    relation_name,
)
from .physical import (
    ApartJoin,
    Attempt,
    ExactRun,
    MaterializedJoin,
    Nothing,
    PhysicalPlan,
    SampledQuery,
    SampleJoin,
    SketchJoin,
)
from .plan import Message, Plan, Scan, Synopsis, most_bytes
from .prediction import cost
from .prediction.cost import Input

if TYPE_CHECKING:
    from .prediction.relation import RelationStatistics


def relations_in(plan: Plan, scan: Scan) -> dict[str, list[int]]:
    """The virtual relations that a scan reads, by name, with the synopses of each."""
    found: dict[str, list[int]] = {}
    for i in scan.synopses:
        own = plan.synopses[i]
        tables = dict.fromkeys(m.table for m in own.messages)
        name = relation_name(own.table, own.filter)
        found.setdefault(f"{name} with {' and '.join(tables)}" if tables else name, []).append(i)
    return found


def operators_of(
    plan: PhysicalPlan,
    attempt: Attempt,
    statistics: Sequence[RelationStatistics] = (),
    groups: Mapping[int, int] | None = None,
) -> tuple[Operator, ...]:
    """The operators of an attempt as trees, none of them run.

    Parameters
    ----------
    plan : PhysicalPlan
        To which the attempt belongs.
    attempt : Attempt
    statistics : sequence of RelationStatistics
        One for each vertex of the query; empty where nothing is known of them.
    groups : mapping of int to int, optional
        How many groups each grouped vertex has, where they are listed.
    """
    counts = groups or {}
    rows = float(math.prod(counts.values())) if counts or not plan.query.groups else None
    predicted = attempt.predicted
    whole = Figures(rows=rows, bytes_held=_known(predicted.nbytes), half_width=_known(predicted.half_width))
    if isinstance(attempt, MaterializedJoin) and not attempt.missing and attempt.expected:
        whole = replace(whole, bytes_held=float(sum(nbytes for _, nbytes in attempt.expected)))
    if isinstance(attempt, ExactRun):
        return (Operator(EXACT_RUN, "", replace(whole, cpu_seconds=_known(predicted.seconds))),)
    if isinstance(attempt, Nothing):
        return (Operator(ESTIMATE, "", whole),)
    if isinstance(attempt, SampledQuery):
        root = Operator(ESTIMATE, "", replace(whole, rows=None))
        return (replace(root, inputs=(Operator(SAMPLE, f"keys {attempt.class_name}"),)),)
    known = _Known(plan, attempt, statistics)
    inputs = known.inputs()
    if not isinstance(attempt, MaterializedJoin):
        inputs = (*inputs, *known.groups())
    return (Operator(ESTIMATE, "", whole, inputs=inputs),)


def of_attempt(
    attempt: Attempt, ran: Sequence[Operator], predicted: Sequence[Operator] = (), *, first: bool = True
) -> tuple[Operator, ...]:
    """What ran for an attempt, as trees, beside what was predicted of it.

    Parameters
    ----------
    attempt : Attempt
    ran : sequence of Operator
        Planning, what built or read synopses, and what gave the answer, in the order in which they ran.
    predicted : sequence of Operator
        As `operators_of` gives them.
    first : bool
        Whether nothing was tried before: planning is told then, later on where it has looked at a table.
    """
    root = EXACT_RUN if isinstance(attempt, ExactRun) else ESTIMATE
    planned = [o for o in ran if o.kind == PLANNING and (o.inputs or first)]
    others = [o for o in ran if o.kind not in (PLANNING, root)]
    if root == ESTIMATE:
        # Where the planner has listed the groups, the estimator reads them all the same.
        others += [i for o in planned for i in o.inputs if i.kind == GROUPS]
        planned = [replace(o, inputs=tuple(i for i in o.inputs if i.kind != GROUPS)) for o in planned]
    top = next((o for o in ran if o.kind == root), Operator(root))
    top = replace(top, inputs=(*top.inputs, *others))
    if not first and not any(o.kind == GROUPS for o in others):
        # An attempt before has listed them.
        predicted = [replace(o, inputs=tuple(i for i in o.inputs if i.kind != GROUPS)) for o in predicted]
    return beside([*(Operator(PLANNING) for _ in planned[:1]), *predicted], [*planned, top])


class _Known:
    """What is known of the relations of an attempt that builds or reads something."""

    def __init__(
        self,
        plan: PhysicalPlan,
        attempt: SketchJoin | SampleJoin | ApartJoin | MaterializedJoin,
        statistics: Sequence[RelationStatistics],
    ) -> None:
        self.query, self.choice = plan.query, plan.choice
        self.attempt, self.plan = attempt, attempt.plan
        self.statistics = statistics
        self.told: set[Message] = set()

    def inputs(self) -> tuple[Operator, ...]:
        """What the estimator reads."""
        if isinstance(self.attempt, SampleJoin):
            return self._samples(self.attempt)
        loaded: tuple[Operator, ...] = ()
        scans = self.plan.scans
        if isinstance(self.attempt, MaterializedJoin):
            known = self.attempt.expected or (None,) * len(self.attempt.names)
            loaded = tuple(
                Operator(LOAD, name, Figures() if k is None else Figures(k[0], None, k[1]))
                for name, k in zip(self.attempt.names, known, strict=True)
            )
            missing = set(self.attempt.missing)
            scans = tuple(
                replace(s, synopses=tuple(i for i in s.synopses if i in missing))
                for s in scans
                if missing.intersection(s.synopses)
            )
        return (*loaded, *map(self._scan, scans))

    def groups(self) -> tuple[Operator, ...]:
        """What lists the groups: nothing tells beforehand how many there are."""
        found = []
        for vertex in dict.fromkeys(g.vertex for g in self.query.groups):
            own = self._vertex(vertex)
            cpu = None if own is None else cost.listed_groups(own, 1.0).seconds
            alias = self.query.graph.vertices[vertex].alias
            found.append(Operator(GROUPS, alias, Figures(cpu_seconds=cpu, half_width=0.0)))
        return tuple(found)

    def _scan(self, scan: Scan) -> Operator:
        """A pass over a table; the synopses of a group are planned for as one."""
        relations = relations_in(self.plan, scan)
        messages = tuple(
            self._message(m) for i in scan.synopses for m in self.plan.synopses[i].messages if self._is_new(m)
        )
        parts = [
            Operator(RELATION, name, self._relation([self.plan.synopses[i] for i in own]))
            for name, own in relations.items()
        ]
        cpu = self._scan_seconds(scan)
        if len(parts) == 1:
            return Operator(SCAN, scan.table, replace(parts[0].predicted, cpu_seconds=cpu), inputs=messages)
        return Operator(SCAN, scan.table, Figures(cpu_seconds=cpu), inputs=(*parts, *messages))

    def _relation(self, synopses: Sequence[Synopsis]) -> Figures:
        own = self._of(synopses[0].table, synopses[0].filter)
        nbytes = None if self.query.groups else float(sum(map(most_bytes, synopses)))
        attempt = self.attempt
        if isinstance(attempt, ApartJoin) and attempt.nbytes and nbytes is not None:
            of = (synopses[0].table, synopses[0].filter)
            sizes = zip(attempt.synopses, attempt.nbytes, strict=True)
            nbytes = float(sum(size for s, size in sizes if (s.table, s.filter) == of))
        return Figures(rows=None if own is None else own.tuples, bytes_held=nbytes)

    def _scan_seconds(self, scan: Scan) -> float | None:
        synopses = [self.plan.synopses[i] for i in scan.synopses]
        relations = {(s.table, s.filter): self._of(s.table, s.filter) for s in synopses}
        if any(r is None for r in relations.values()):
            return None
        spent = cost.scans([max((r for r in relations.values() if r is not None), key=lambda r: r.scanned)])
        # Synopses of several weights on the same keys are one update of a tuple.
        for (table, condition), own in relations.items():
            here = [s for s in synopses if (s.table, s.filter) == (table, condition)]
            if own is None or not here:
                continue
            messages = max(len(s.messages) for s in here)
            distinct = list(dict.fromkeys((s.method, s.attributes) for s in here if s.distinct))
            linear = dict.fromkeys(
                (s.method, s.attributes, s.rows * s.buckets) for s in here if not s.distinct
            )
            if distinct:
                spent = spent.plus(cost.distinct_synopses([own] * len(distinct), [m for m, _ in distinct], 1))
            for method, attributes, counters in linear:
                if attributes:
                    spent = spent.plus(cost.sketches([own], [len(attributes)], method, counters))
                else:
                    spent = spent.plus(cost.counted(own))
            if messages:
                spent = spent.plus(cost.received(own, messages))
        return spent.seconds

    def _is_new(self, message: Message) -> bool:
        """Whether no operator before sends it."""
        if message.relation in self.told:
            return False
        self.told.add(message.relation)
        return True

    def _message(self, message: Message) -> Operator:
        inputs = tuple(self._message(m) for m in message.messages if self._is_new(m))
        own, sent = self._of(message.table, message.filter), self._fold(message)
        cpu = None
        if own is not None and sent is not None:
            cpu = cost.scans([own]).plus(cost.message(own, sent[0], len(message.messages))).seconds
        nbytes = None if sent is None else sent[1]
        rows = None if sent is None else sent[0]
        name = relation_name(message.table, message.filter)
        return Operator(MESSAGE, name, Figures(rows, None, nbytes, cpu, 0.0), inputs=inputs)

    def _fold(self, message: Message) -> tuple[float, float] | None:
        """Keys and bytes that a message is predicted to have, where the planner has counted it."""
        if self.choice is None or not self.statistics:
            return None
        from .candidates.folding import fold_keys, planned_bytes
        from .prediction.figures import Figures as Predictions
        from .prediction.relation import complete

        residual = self.choice.taken.residual
        tree = residual.tree
        relations = [complete(s, len(tree.classes_of(v))) for v, s in enumerate(self.statistics)]
        figures = Predictions(tree, relations)
        vertices = self.query.graph.vertices
        for sender, keys, _ in fold_keys(figures, residual):
            if (vertices[sender].table, vertices[sender].filter) == (message.table, message.filter):
                return keys, planned_bytes(figures, sender, keys, self.choice.objective)
        return None

    def _samples(self, attempt: SampleJoin) -> tuple[Operator, ...]:
        """The scans of a sample, tables of the sampled class first."""
        sample = self.plan.sample
        assert sample is not None, "a sample join has a sample"
        members = [v for v, _ in sample.members]
        order = [*members, *(v for v in range(len(self.plan.vertices)) if v not in members)]
        terms = self.plan.terms
        found = []
        for v in order:
            number = self.plan.vertices[v]
            vertex, own = self.query.graph.vertices[number], self._vertex(number)
            tuples = own.tuples if own is not None else None
            if tuples is None and number < len(attempt.expected):
                tuples = _known(attempt.expected[number])
            rows = None if tuples is None else sample.rate * tuples
            name = relation_name(vertex.table, vertex.filter, vertex.alias)
            messages = tuple(
                self._message(m)
                for t in terms[:1]
                for m in self.plan.synopses[t.synopses[v]].messages
                if self._is_new(m)
            )
            cpu = None if own is None or rows is None else self._sample_seconds(own, rows, v in members)
            found.append(Operator(SAMPLE, name, Figures(rows=rows, cpu_seconds=cpu), inputs=messages))
        return tuple(found)

    def _sample_seconds(self, own: Input, rows: float, member: bool) -> float:
        sample = self.plan.sample
        assert isinstance(self.attempt, SampleJoin), "a sample is asked for"
        assert sample is not None, "a sample join has a sample"
        if self.attempt.enlarges:
            asked = [own] if member else []
            return cost.first_scans([own]).plus(cost.first_sample([own], asked, rows)).seconds
        if self.attempt.method == "sampled_messages":
            members, others = ([own], []) if member else ([], [own])
            scanned = cost.sampled_messages(members, others, rows, len(sample.dense))
        else:
            scanned = cost.sample([own], sample.rate, len(sample.dense))
        return cost.scans([own]).plus(scanned).seconds

    def _vertex(self, number: int) -> Input | None:
        if number >= len(self.statistics):
            return None
        known = self.statistics[number]
        scanned = known.scanned if known.scanned is not None else known.tuples
        if known.tuples is None or scanned is None:
            return None
        return Input(known.tuples, scanned)

    def _of(self, table: str, condition: str | None) -> Input | None:
        """What is known of the tuples of a virtual relation."""
        for number, vertex in enumerate(self.query.graph.vertices):
            if (vertex.table, vertex.filter) == (table, condition):
                return self._vertex(number)
        return None


def _known(figure: float) -> float | None:
    return float(figure) if math.isfinite(figure) else None
