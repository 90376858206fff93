"""From a statement that was read to its query: by sketches and samples, or by the user's own text on sampled keys."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import SkimqlError, UnsupportedQuery
from ...optimizer.methods import ANSWERED
from ...parser.join_graph import Query
from ...parser.resolve import resolve, resolve_rows
from ...parser.sampled_select import SampledQuery, resolve_sampled
from ...parser.scope import EXACT
from ...parser.statement import ApproximateSelect, EstimateRows
from ..materialized.lookup import MaterializedLookup
from ..sources.keys import with_key_types
from .settings_of import settings_of

if TYPE_CHECKING:
    from ..context import Context

# The method that runs the user's own query.
SAMPLED = "sampled_query"


@dataclass(frozen=True)
class Resolving:
    """Resolves the names of statements in a session's tables."""

    context: Context

    def select(self, select: ApproximateSelect, known: frozenset[str] = ANSWERED) -> Query:
        """The query of a SELECT; `known` are the features that whoever asks can answer.

        Raises
        ------
        SkimqlError
            As `parser.resolve.resolve` and `parser.sampled_select.resolve_sampled`.
        """
        tables = self.context.tables
        try:
            if select.method == SAMPLED and known == ANSWERED:
                return self._sampled(select)
            return resolve(select, tables, ansi=self._ansi, known=known)
        except UnsupportedQuery as fault:
            if select.method is None and known == ANSWERED:
                found = self._sampled_instead(select, fault)
                if found is not None:
                    return found
            raise

    def rows(self, statement: EstimateRows) -> Query:
        """The query of ESTIMATE ROWS."""
        return resolve_rows(statement, self.context.tables, ansi=self._ansi)

    def to_be_explained(self, select: ApproximateSelect) -> Query:
        """The query of a SELECT; one that is refused is explained as far as it was read."""
        if select.method is None:
            with suppress(UnsupportedQuery):
                return self.select(select)
        if select.method == SAMPLED:
            return self._sampled(select)
        return resolve(select, self.context.tables, ansi=self._ansi, strict=False)

    def typed(self, query: Query) -> Query:
        """The query with the types of all keys, and of the values that it counts, known."""
        tables, keyed = self.context.tables, query
        if any(None in edge.key_types for edge in query.graph.edges):
            known = MaterializedLookup(self.context).key_types()
            keyed = with_key_types(query, tables, self._ansi, known)
        if not query.counts_distinct:
            return keyed
        from ..results.distinct import with_counted_types

        return with_counted_types(keyed, tables, MaterializedLookup(self.context).key_types())

    def _sampled_instead(self, select: ApproximateSelect, fault: UnsupportedQuery) -> Query | None:
        """The query on a sample of keys, where as written only Spark could answer it, and an error is asked.

        Without one the way out says that it could be run so.
        """
        if EXACT not in fault.hint or SAMPLED in fault.hint:
            return None
        try:
            found = self._sampled(by_sample(select))
            if found.is_in_files:
                return found
            aims = settings_of(self.context.settings, select).error is not None
            if aims and len(found.ways[0].roles) > 1:
                # Where no equality joins tables what is left of them may still be too much to be run.
                return replace(found, warnings=(*found.warnings, f"by a sample of keys: {fault.message}"))
            fault.hint = fault.hint.replace(EXACT, f"the same with USING {SAMPLED} at its end, or {EXACT}")
        except SkimqlError as own:
            if fault.hint == EXACT and own.code == fault.code and own.hint != EXACT:
                # A part of the text is answered so, if it is written otherwise.
                fault.message, fault.hint = own.message, own.hint
        return None

    def _sampled(self, select: ApproximateSelect) -> SampledQuery:
        from .sampled_tables import SampledTables

        return resolve_sampled(select, self.context.tables, SampledTables(self.context, jobs=False).in_order)

    @property
    def _ansi(self) -> bool:
        return self.context.environment.circumstances().ansi


def by_sample(select: ApproximateSelect) -> ApproximateSelect:
    """The SELECT as if it asked for a sample of keys."""
    return select if select.method == SAMPLED else replace(select, method=SAMPLED)
