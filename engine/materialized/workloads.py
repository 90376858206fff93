"""CREATE SKETCHES … FOR QUERIES and EXPLAIN SKETCHES: planned together, built in one pass a table, kept together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import UnknownName, UnsupportedQuery, printable
from ...optimizer.combinations import check_materialized
from ...optimizer.plan import Synopsis
from ...parser.join_graph import Query
from ...parser.syntax import CreateSketches, ExplainSketches
from ..catalog.file import StoredSketch
from ..catalog.form import Lineage
from ..catalog.manifest import StoredWorkload
from ..results.answer import Answer
from ..synopses import Built
from .declared import check_joins, histograms_of, plan_workload_of, workload_json
from .definition import blank, refuse_unstable, stored, typed
from .lineage import table_lineages
from .names import is_taken, taken_name

if TYPE_CHECKING:
    from ...optimizer.prediction.relation import RelationStatistics
    from ...optimizer.workload.declared import DeclaredQueries
    from ..context import Context


@dataclass
class Workloads:
    """Runs the statements about sketches for many queries."""

    context: Context

    def create(self, statement: CreateSketches, queries: Sequence[Query]) -> Answer:
        """Plan the workload, build it in one pass per table and keep it; the stages of the plan as text.

        Raises
        ------
        UnsupportedQuery
            If the name is taken, or a query depends on more than its tables.
        SkimqlError
            As `plan_workload_of` and `build`.
        """
        from ...optimizer.describe.workload import describe_workload
        from ..execution.build import build

        name, catalog = statement.name.text, self.context.catalog
        if is_taken(catalog, name) and not statement.or_replace:
            raise taken_name(statement.sql, statement.name, f"CREATE OR REPLACE SKETCHES {name} ...")
        if statement.or_replace and catalog.entry(name) is not None:
            raise taken_name(statement.sql, statement.name, f"DROP SKETCH {name}, or another name")
        self._refuse_overwriting(statement)
        declared, relations = self.plan(statement, queries)
        stages = describe_workload(name, declared, relations)
        plan = declared.plans[0]
        for s in plan.synopses:
            keys = [k for a in s.attributes for k in a.keys]
            expressions = (s.filter, s.weight.expression, *keys)
            refuse_unstable(statement.sql, expressions, self.context.environment.own_functions)
        started, tables = time.perf_counter(), self.context.tables
        readings = table_lineages(tables, (s.table for s in plan.synopses))
        built = build(self.context.spark, plan, self.context.tables, self.context.listener)
        sketches = [
            self._stored(statement, number, synopsis, plan.seed, one, readings[synopsis.table])
            for number, (synopsis, one) in enumerate(zip(plan.synopses, built, strict=True))
        ]
        for table in readings:
            self.context.environment.remember(table)
        names = tuple(s.head.name for s in sketches)
        workload = StoredWorkload(name, names, workload_json(declared, stages, relations))
        based_on = {} if statement.or_replace else {name: None}
        catalog.put(*sketches, forget=(name,), workload=workload, based_on=based_on)
        return Answer(
            ("plan",),
            ((stages,),),
            exact=True,
            bytes_used=sum(b.sketch.nbytes for b in built),
            seconds={"build": time.perf_counter() - started},
        )

    def plan(
        self, statement: CreateSketches, queries: Sequence[Query]
    ) -> tuple[DeclaredQueries, list[RelationStatistics]]:
        """What is to be built, and what is known of the relations, after a pilot where nothing was; see `create`."""
        from ..statistics.gather import gather_all

        check_joins(statement, queries)
        context, settings = self.context, self.context.settings
        check_materialized(settings.route, statement.sql)
        known = gather_all(context.spark, context.tables, queries, context.statistics, context.listener)
        histograms = histograms_of(queries, known)
        declared = plan_workload_of(statement, queries, settings.seed, settings.sparse, histograms)
        return declared, list(dict.fromkeys(r for row in known for r in row))

    def explain(self, statement: ExplainSketches) -> Answer:
        """What each stage of planning a workload changed; UnknownName if there is none of that name."""
        catalog = self.context.catalog
        workload = catalog.workload(statement.name.text)
        if workload is None:
            known = [w.name for w in catalog.manifest.workloads.values()]
            raise UnknownName(
                f"there are no sketches {statement.name.text}",
                sql=statement.sql,
                span=(statement.name.span.start, statement.name.span.end),
                hint=", ".join(known) or "CREATE SKETCHES ...",
            )
        text, gathered = workload.plans["stages"], workload.plans.get("gathered_at")
        if gathered is not None:
            text += f"\nthe statistics are {max(time.time() - gathered, 0.0):,.0f} s old"
        return Answer(("plan",), ((printable(text),),), exact=True, is_text=True)

    def _refuse_overwriting(self, statement: CreateSketches) -> None:
        """Refuse a name whose sketches would take those of others; how many there will be is not known yet."""
        name, catalog = statement.name.text.lower(), self.context.catalog
        own = catalog.workload(name)
        members = {s.lower() for s in own.sketches} if own is not None else set()
        for entry in catalog.manifest.sketches.values():
            base, dot, number = entry.name.lower().rpartition(".")
            if dot and base == name and number.isdecimal() and entry.name.lower() not in members:
                raise UnsupportedQuery(
                    f"there is a sketch {entry.name} already, and sketches {statement.name.text} are numbered so",
                    "SKIMQL_SKETCHES_EXIST",
                    statement.sql,
                    (statement.name.span.start, statement.name.span.end),
                    f"DROP SKETCH `{entry.name}`, or another name",
                )

    def _stored(
        self,
        statement: CreateSketches,
        number: int,
        synopsis: Synopsis,
        seed: int,
        built: Built,
        reading: Lineage,
    ) -> StoredSketch:
        draft = blank(
            f"{statement.name.text}.{number}",
            synopsis.table,
            synopsis.filter,
            synopsis.attributes,
            [synopsis.weight],
            method=synopsis.method,
            seed=seed,
            rows=synopsis.rows,
            buckets=synopsis.buckets,
            sparse=synopsis.sparse,
            group=statement.name.text,
            cell=synopsis.cell,
        )
        now = self.context.environment.circumstances()
        head = typed(draft, self.context.tables, now, statement.sql, compared=True)
        return stored(replace(head, lineage=(reading,)), (built,))
