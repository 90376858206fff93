"""Tables and a backend in memory that find out once what no seed changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.memory_backend.weights import Weights
from skimql.engine.sources.ranges import Range
from skimql.optimizer.candidates.value_draws import Summed
from skimql.optimizer.plan import Attribute, Weight
from skimql.optimizer.prediction.relation import RelationStatistics
from skimql.parser.join_graph import Query


class KnownTables(MemoryTables):
    """Computes once what every seed wants of whole tables."""

    def __init__(self, tables: Mapping[str, pa.Table], zone: str = "UTC") -> None:
        super().__init__(tables, zone)
        self._known: dict[object, Any] = {}
        self._whole: dict[int, pa.Table] = {}  # by their numbers, which they keep while they are held here

    def _once(self, key: object, make: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def behind(self, name: str, condition: str | None) -> pa.Table:
        """See `MemoryTables.behind`."""
        found = self._once(
            ("t", name.lower(), condition), lambda: super(KnownTables, self).behind(name, condition)
        )
        return self._whole.setdefault(id(found), found)

    def key_values(self, attribute: Attribute, tuples: pa.Table) -> pa.Array:
        """See `MemoryTables.key_values`."""
        if id(tuples) not in self._whole:
            return super().key_values(attribute, tuples)
        key = ("k", id(tuples), attribute.keys, attribute.key_types)
        return self._once(key, lambda: super(KnownTables, self).key_values(attribute, tuples))

    def weights(self, weight: Weight, tuples: pa.Table, sql: str) -> Weights:
        """See `MemoryTables.weights`."""
        if id(tuples) not in self._whole:
            return super().weights(weight, tuples, sql)
        return self._once(
            ("w", id(tuples), weight), lambda: super(KnownTables, self).weights(weight, tuples, sql)
        )

    def column_range(self, name: str, column: str, kept: pa.Table | None = None) -> Range:
        """See `MemoryTables.column_range`."""
        if kept is not None and id(kept) not in self._whole:
            return super().column_range(name, column, kept)
        key = ("r", name.lower(), column, None if kept is None else id(kept))
        return self._once(key, lambda: super(KnownTables, self).column_range(name, column, kept))


class KnownBackend(MemoryBackend):
    """What depends on the data alone is found out once: statistics, groups, exact answers."""

    def __init__(self, tables: MemoryTables, pilot_tuples: int | None) -> None:
        super().__init__(tables, pilot_tuples)
        object.__setattr__(self, "_known", {})

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """What `make` gave the first time."""
        known: dict[object, Any] = self._known  # type: ignore[attr-defined]
        if key not in known:
            known[key] = make()
        return known[key]

    def statistics(self, query: Query, *, jobs: bool = True) -> tuple[RelationStatistics, ...]:
        """See `MemoryBackend.statistics`."""
        return self.once(
            ("s", query.sql, jobs), lambda: super(KnownBackend, self).statistics(query, jobs=jobs)
        )

    def relations(self, relations: Sequence[Any], *, jobs: bool = True) -> Mapping[Any, RelationStatistics]:
        """See `MemoryBackend.relations`."""
        found = {}
        for relation in relations:

            def gathered(one: Any = relation) -> RelationStatistics:
                return super(KnownBackend, self).relations([one], jobs=jobs)[one]

            found[relation] = self.once(("r", relation, jobs), gathered)
        return found

    def groups(self, query: Query, most: int) -> Any:
        """See `MemoryBackend.groups`."""
        return self.once(("g", query.sql), lambda: super(KnownBackend, self).groups(query, most))

    def summed(self, query: Query) -> tuple[Summed, ...]:
        """See `MemoryBackend.summed`."""
        return self.once(("x", query.sql), lambda: super(KnownBackend, self).summed(query))

    def exact(self, query: Query) -> Any:
        """See `MemoryBackend.exact`."""
        return self.once(("e", query.sql), lambda: super(KnownBackend, self).exact(query))
