"""Many seeds of standing queries from one scan: the columns that Spark sends, through the kernel of its workers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skimql.engine.execution.build import add_up
from skimql.engine.execution.messages import Messages
from skimql.engine.execution.partial_aggregate import sketch_plan, task
from skimql.engine.execution.scan import prepare
from skimql.engine.materialized.declared import histograms_of, plan_workload_of, selects_of
from skimql.engine.results.estimator import SketchJoin
from skimql.engine.statistics.gather import gather_all
from skimql.optimizer.methods import ANSWERED, DISTINCT, GROUPING
from skimql.parser.statement import parse_statement


def planned(session, sql):
    """The plan of a CREATE SKETCHES statement, nothing built."""
    statement = parse_statement(sql)
    queries = [
        session.typed(session._resolved(s, ANSWERED - GROUPING - DISTINCT)) for s in selects_of(statement)
    ]
    known = gather_all(session.spark, session.tables, queries, session.statistics)
    settings = session.settings
    return plan_workload_of(statement, queries, settings.seed, settings.sparse, histograms_of(queries, known))


class StandingSeeds:
    """Estimates of the queries of a workload under any number of seeds, reading its tables once.

    Parameters
    ----------
    session : Session
    standing : StandingQueries
    """

    def __init__(self, session, declared):
        self.plans, self.scans = declared.plans, []
        plan = self.plans[0]
        messages = Messages(session.spark, plan, session.tables)
        for scan in plan.scans:
            prepared = prepare(plan, scan, session.tables.frame(scan.table), messages)
            batches = prepared.columns.toArrow().combine_chunks().to_batches(max_chunksize=65_536)
            self.scans.append((prepared, batches))

    def estimates(self, seed):
        """The estimate of the first aggregate of every query, in counters alone."""
        built = {}
        for prepared, batches in self.scans:
            sketches = {
                i: replace(sketch_plan(self.plans[0].synopses[i], seed, old.spec.dtype), sparse=False)
                for i, old in prepared.sketches.items()
            }
            sent = task(sketches, prepared.feeds)(iter(batches))
            rows = [row for batch in sent for row in batch.to_pylist()]
            built |= add_up(replace(prepared, sketches=sketches), rows)
        found = [built[i] for i in range(len(built))]
        return [SketchJoin(p, found).total(p.aggregates[0].total, 0.95) for p in self.plans]

    def values(self, seeds):
        """Shape (seeds, queries)."""
        return np.array([[e.value for e in self.estimates(seed)] for seed in seeds])
