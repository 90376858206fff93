"""What Spark computes in one pass over a table: the columns that travel to Python, and which sketch each feeds.

Spark prunes, filters, casts and fingerprints; only BIGINT, DOUBLE and mask columns travel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...optimizer.plan import Attribute, Message, Plan, Scan, Synopsis
from ...optimizer.route import family_parameters
from ..sources.filters import filtered
from ..sources.keys import is_column, key_column
from ..sources.weights import WeightColumn, product, weight_column
from .messages import Messages
from .partial_aggregate import Feed, SketchPlan, cell_number, group_column, sketch_plan


@dataclass(frozen=True, slots=True)
class PreparedScan:
    """One pass, ready to run.

    Attributes
    ----------
    columns : DataFrame
        What travels to the workers.
    feeds : tuple of Feed
        How each batch of `columns` feeds the sketches.
    sketches : mapping of int to SketchPlan
        The sketch of each synopsis of the scan, by its number in the plan.
    scales : mapping of int to float
        The factor that made a synopsis's weights integers; 1 but for DECIMAL.
    """

    columns: DataFrame
    feeds: tuple[Feed, ...]
    sketches: dict[int, SketchPlan]
    scales: dict[int, float]


def prepare(
    plan: Plan, scan: Scan, frame: DataFrame, messages: Messages, times: str | None = None
) -> PreparedScan:
    """The pass over `frame` that feeds every synopsis of `scan`, after the exact messages into it.

    `times`, as SQL of type BIGINT, says how often each tuple counts, negative where it deletes; None for once.

    Raises
    ------
    UnsupportedQuery
        If Spark cannot sum an argument of SUM or AVG.
    BudgetExceeded
        If an exact message is too large.
    """
    synopses = {i: plan.synopses[i] for i in scan.synopses}
    own = {
        w: weight_column(frame, w, plan.query.sql) for w in dict.fromkeys(s.weight for s in synopses.values())
    }
    relations = {i: _Relation.of(s) for i, s in synopses.items()}
    filters = dict.fromkeys(r.filter for r in relations.values())
    frame, present = messages.joined(filtered(frame, filters), [s.messages for s in synopses.values()])
    signs = [] if times is None else [WeightColumn(times, "int64")]
    # Of distinct values a partner is all that matters, not how many: they are weighed by the signs alone.
    sent = {i: () if s.distinct else s.messages for i, s in synopses.items()}
    weights = {i: product([own[s.weight], *messages.weights(sent[i]), *signs]) for i, s in synopses.items()}
    # With one relation for all, Spark filters; with several, a tuple travels if any keeps it, with a mask for each.
    masks = {r: r.mask(len(filters) > 1, present) for r in dict.fromkeys(relations.values())}
    columns: dict[tuple[str, object], Column] = {}
    # What may fail is computed only where its relation's filter holds.
    key_names: dict[tuple[_Relation, Attribute], tuple[str, object]] = {}
    weight_names: dict[int, tuple[str, object]] = {}
    slack_names: dict[int, tuple[str, object]] = {}
    domains = dict(plan.partitions)
    # By virtual relation and attributes; in each, the synopses of every group or cell, or those of all tuples.
    fed: dict[tuple[_Relation, tuple[Attribute, ...], int | None, object], dict[int, list[int]]] = {}
    for i, synopsis in synopses.items():
        grouped, number = synopsis.group or (None, cell_number(synopsis, domains))
        if grouped is not None:
            columns["group", grouped] = F.col(f"`{group_column(grouped)}`")
        # Hashes are shared by sketches of one size; groups and cells are told apart at once, and hash each their own.
        size = (synopsis.rows, synopsis.buckets) if grouped is None and not synopsis.cell else None
        members = fed.setdefault((relations[i], synopsis.attributes, grouped, size), {})
        members.setdefault(number, []).append(i)
        mask = masks[relations[i]]
        if mask is not None:
            columns["mask", relations[i]] = mask
        for attribute in synopsis.attributes:
            key = key_column(attribute)
            shield = None if all(map(is_column, attribute.keys)) else mask
            name = "key", (attribute, None if shield is None else relations[i])
            key_names[relations[i], attribute] = name
            columns[name] = key if shield is None else F.when(shield, key)
        column = weights[i].column
        if column is not None:
            shield = None if is_column(synopsis.weight.expression or "``") else mask
            own_relation = None if shield is None else relations[i]
            weight_names[i] = "weight", (synopsis.weight, sent[i], own_relation)
            columns[weight_names[i]] = column if shield is None else F.when(shield, column).otherwise(0)
            if weights[i].slack is not None:
                slack_names[i] = "slack", (synopsis.weight, sent[i], own_relation)
                moved = F.expr(str(weights[i].slack))
                columns[slack_names[i]] = moved if shield is None else F.when(shield, moved).otherwise(0)
    names: dict[tuple[str, object], str] = {what: f"c{n}" for n, what in enumerate(columns)}
    feeds = []
    for (relation, attributes, grouped, _), members in fed.items():
        one = [synopses[i] for i in members[0]]
        partitions = tuple(domains.get(a.class_name) for a in attributes) if one[0].cell else ()
        split = grouped is not None or bool(partitions)
        feeds.append(
            Feed(
                names.get(("mask", relation)),
                tuple(names[key_names[relation, a]] for a in attributes),
                tuple(names[weight_names[i]] if i in weight_names else None for i in members[0]),
                () if split else tuple(members[0]),
                names["group", grouped] if grouped is not None else None,
                tuple(tuple(members[n]) for n in range(len(members))) if split else (),
                partitions,
                tuple(names[slack_names[i]] if i in slack_names else None for i in members[0]),
            )
        )
    # Where only tuples are counted no column is needed, but rows must travel.
    travelling = [c.alias(names[what]) for what, c in columns.items()] or [
        F.lit(1).cast("bigint").alias("c0")
    ]
    return PreparedScan(
        frame.select(*travelling),
        tuple(feeds),
        {
            i: sketch_plan(s, plan.seed, weights[i].dtype, plan.family, **family_parameters(plan))
            for i, s in synopses.items()
        },
        {i: weights[i].scale for i in synopses},
    )


@dataclass(frozen=True, slots=True)
class _Relation:
    """A virtual relation of the scanned table: its filter, and which other tables were joined into it."""

    filter: str | None
    joined: tuple[Message, ...]

    @classmethod
    def of(cls, synopsis: Synopsis) -> _Relation:
        return cls(synopsis.filter, tuple(m.relation for m in synopsis.messages))

    def mask(self, filtered: bool, present: Mapping[Message, Column]) -> Column | None:
        """Which of the tuples that travel belong to it; None for all of them."""
        parts = [present[m] for m in self.joined if m in present]
        if filtered and self.filter is not None:
            parts.append(F.coalesce(F.expr(self.filter), F.lit(False)))
        return reduce(lambda a, b: a & b, parts) if parts else None
