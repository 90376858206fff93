"""Many seeds from one scan: the engine's own columns, extracted once, through the engine's own kernel."""

from __future__ import annotations

from dataclasses import replace

from skimql.engine.answer import answer_plan
from skimql.engine.joined import SketchJoin
from skimql.engine.maintain import add_up
from skimql.engine.messages import Messages
from skimql.engine.partial import task
from skimql.engine.scan import prepare, sketch_plan
from skimql.optimizer.route import family_parameters


class ManySeeds:
    """Answers of one query for any number of seeds, reading its tables once.

    Parameters
    ----------
    session : Session
    sql : str
        A SELECT to be estimated.
    """

    def __init__(self, session, sql):
        self.plan = session.plan(sql)
        self.scans = []
        messages = Messages(session.spark, self.plan, session.tables)
        for scan in self.plan.scans:
            prepared = prepare(self.plan, scan, session.tables.frame(scan.table), messages)
            batches = prepared.columns.toArrow().combine_chunks().to_batches(max_chunksize=65_536)
            self.scans.append((prepared, batches))

    def built(self, seed, sparse=None):
        """Every sketch of the plan under another seed; `sparse` says whether maps are kept."""
        out = {}
        for prepared, batches in self.scans:
            sketches = {
                i: sketch_plan(
                    self.plan.synopses[i],
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
        return [out[i] for i in range(len(out))]

    def answer(self, seed, confidence=0.95, sparse=None):
        """The answer under another seed."""
        return answer_plan(self.plan, SketchJoin(self.plan, self.built(seed, sparse)), confidence)
