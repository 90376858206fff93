"""Everything that is done with a statement before Spark is needed, against fixed tables."""

from __future__ import annotations

from skimql.engine.materialized.declared import selects_of
from skimql.engine.settings import Settings
from skimql.optimizer.choose import choose
from skimql.parser.explain import explain
from skimql.parser.join_graph import FEATURES, Column, Query, TableSchema
from skimql.parser.resolve import resolve, resolve_rows
from skimql.parser.sketch import resolve_append, resolve_sketch
from skimql.parser.statement import (
    ApproximateSelect,
    EstimateRows,
    Explain,
    SetOption,
    parse_statement,
    split_statements,
)
from skimql.parser.syntax import AppendSketch, CreateSketch, CreateSketches

KNOWN = frozenset(FEATURES) - {"cross product"}


def _table(name: str, view: str | None = None, **columns: str) -> TableSchema:
    return TableSchema(name, tuple(Column(c, kind) for c, kind in columns.items()), view)


TABLES = {
    t.name: t
    for t in (
        _table(
            "orders",
            o_orderkey="bigint",
            o_custkey="bigint",
            o_totalprice="decimal(15,2)",
            o_orderdate="date",
        ),
        _table(
            "lineitem", l_orderkey="bigint", l_price="double", l_discount="decimal(4,2)", l_shipdate="date"
        ),
        _table("customer", c_custkey="bigint", c_name="string", c_acctbal="double", c_nation="int"),
        _table("flights", tailnum="string", distance="int", month="int", dest="string"),
        _table("planes", tailnum="string", seats="int", year="int", tag="struct<a:int>"),
        _table(
            "dear",
            "SELECT o_orderkey, o_custkey FROM orders WHERE o_totalprice > 100",
            o_orderkey="bigint",
            o_custkey="bigint",
        ),
    )
}


def read(text: str) -> None:
    """Read every statement of a text; raises what SkimQL raises."""
    settings = Settings()
    for piece in split_statements(text):
        statement = parse_statement(piece.sql)
        inner = statement.statement if isinstance(statement, Explain) else statement
        match inner:
            case ApproximateSelect():
                _plan(resolve(inner, TABLES, known=KNOWN), inner, settings)
            case EstimateRows():
                _plan(resolve_rows(inner, TABLES), inner.select, settings)
            case CreateSketch():
                settings.with_text(inner.options)
                resolve_sketch(inner, TABLES)
            case AppendSketch() if inner.path is None:
                resolve_append(inner, TABLES)
            case CreateSketches():
                for select in selects_of(inner):
                    resolve(select, TABLES, known=KNOWN)
            case SetOption():
                settings = settings.with_text({inner.name.removeprefix("skimql."): inner.value})


def _plan(query: Query, select: ApproximateSelect, settings: Settings) -> None:
    from skimql.engine.queries.run import settings_of

    chosen = settings_of(settings, select)
    explain(query)
    typed = all(None not in edge.key_types for edge in query.graph.edges)
    tree = not any(f.name in ("cyclic join", "cross product") for f in query.features)
    plain = all(g.vertex == query.groups[0].vertex for g in query.groups)
    if typed and tree and plain and not query.empty and not query.counts_distinct:
        choose(query, chosen.seed, chosen.rows or 11, chosen.buckets)
