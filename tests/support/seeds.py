"""Many seeds from one scan: the engine's own columns, extracted once, through the engine's own kernel."""

from __future__ import annotations

from dataclasses import replace

from support.plans import own_of, together

from skimql.engine.execution.build import add_up
from skimql.engine.execution.messages import Messages
from skimql.engine.execution.partial_aggregate import sketch_plan, task
from skimql.engine.execution.scan import prepare
from skimql.engine.results.answer import answer_plan
from skimql.engine.results.estimator import SketchJoin
from skimql.optimizer.route import family_parameters

TUPLES = "tuples of equal keys"


class ManySeeds:
    """Answers of one query for any number of seeds, reading its tables once.

    Parameters
    ----------
    session : Session
    sql : str
        A SELECT to be estimated.
    summed : bool
        Whether tuples of equal keys are added up first. Counters are linear: they come out the same, many times
        faster. For weights that are integers, in scans without masks, groups and parts.
    """

    def __init__(self, session, sql, *, summed=False):
        self._scan(session, session.plan(sql).build, summed)

    @classmethod
    def of_several(cls, session, plans):
        """One for each plan, reading each table once for all of them."""
        every = cls.__new__(cls)
        every._scan(session, together(plans))
        return [every._of(plan) for plan in plans]

    def _of(self, plan):
        own = type(self).__new__(type(self))
        own.whole, own.plan = self.whole, plan
        places = {self.whole.synopses.index(s) for s in plan.synopses}
        own.scans = []
        for prepared, batches in self.scans:
            sketches = {i: old for i, old in prepared.sketches.items() if i in places}
            if sketches:
                feeds = tuple(f for f in (_only(f, places) for f in prepared.feeds) if f.synopses)
                own.scans.append((replace(prepared, sketches=sketches, feeds=feeds), batches))
        return own

    def _scan(self, session, plan, summed=False):
        self.plan = self.whole = plan
        self.scans = []
        messages = Messages(session.spark, self.plan, session.tables)
        for scan in self.plan.scans:
            prepared = prepare(self.plan, scan, session.tables.frame(scan.table), messages)
            columns = prepared.columns.toArrow()
            if summed:
                prepared, columns = _summed(prepared, columns)
            self.scans.append((prepared, columns.combine_chunks().to_batches(max_chunksize=65_536)))

    def built(self, seed, sparse=None):
        """Every sketch of the plan under another seed; `sparse` says whether maps are kept."""
        out = {}
        for prepared, batches in self.scans:
            sketches = {
                i: sketch_plan(
                    self.whole.synopses[i],
                    seed,
                    getattr(old.spec, "dtype", "int64"),
                    self.plan.family,
                    **family_parameters(self.plan),
                )
                for i, old in prepared.sketches.items()
            }
            if sparse is not None:
                sketches = {i: replace(plan, sparse=sparse) for i, plan in sketches.items()}
            sent = task(sketches, prepared.feeds)(iter(batches))
            rows = [row for batch in sent for row in batch.to_pylist()]
            out |= add_up(replace(prepared, sketches=sketches), rows)
        return own_of(self.plan, self.whole, out)

    def answer(self, seed, confidence=0.95, sparse=None):
        """The answer under another seed."""
        return answer_plan(self.plan, SketchJoin(self.plan, self.built(seed, sparse)), confidence)


def _only(feed, places):
    """The feed of some of its synopses."""
    assert not feed.members
    kept = [(s, w) for s, w in zip(feed.synopses, feed.weights, strict=True) if s in places]
    return replace(feed, synopses=tuple(s for s, _ in kept), weights=tuple(w for _, w in kept))


def _summed(prepared, columns):
    """The scan over the sums of its weights for each combination of its keys."""
    assert all(f.mask is None and f.group is None and not f.partitions for f in prepared.feeds)
    keys = sorted({k for f in prepared.feeds for k in f.keys})
    weights = sorted({w for f in prepared.feeds for w in f.weights if w is not None})
    sums = columns.group_by(keys).aggregate([*((w, "sum") for w in weights), ([], "count_all")])
    sums = sums.rename_columns([*keys, *weights, TUPLES])
    feeds = tuple(
        replace(f, weights=tuple(TUPLES if w is None else w for w in f.weights)) for f in prepared.feeds
    )
    return replace(prepared, feeds=feeds), sums
