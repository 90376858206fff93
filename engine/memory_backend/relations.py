"""Virtual relations in memory: the tuples of a table behind a filter, with exact messages joined in as weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...optimizer.operators import MESSAGE, relation_name
from ...optimizer.plan import Attribute, Message, Plan, Weight
from ..execution.message_limit import DEFAULT_LIMIT_BYTES, MessageTooLarge
from ..observed import observed
from .tables import MemoryTables
from .weights import Weights, product, totals

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sent:
    """A message: its keys, ascending, and the weight of each in each of its variants."""

    keys: Ints
    weights: dict[Message, Weights]

    @property
    def nbytes(self) -> int:
        """Bytes of keys and weights."""
        values = (v for w in self.weights.values() for v in (w.values, w.slack))
        return self.keys.nbytes + sum(v.nbytes for v in values if v is not None)


@dataclass(frozen=True)
class Relation:
    """Tuples, and for each message that is joined in the number of the key each of them meets, -1 for none."""

    tuples: pa.Table
    partners: dict[Message, Ints] = field(default_factory=dict)

    def filtered(self, rows: npt.NDArray[np.bool_]) -> Relation:
        """Some of the tuples."""
        if rows.all():
            return self
        return Relation(self.tuples.filter(pa.array(rows)), {m: p[rows] for m, p in self.partners.items()})


class Relations:
    """The virtual relations of a plan, each message sent when it is first needed.

    Parameters
    ----------
    plan : Plan
    tables : MemoryTables
    limit_bytes : int or None
        Bytes that one message may take; None for any number.
    """

    def __init__(
        self, plan: Plan, tables: MemoryTables, limit_bytes: int | None = DEFAULT_LIMIT_BYTES
    ) -> None:
        self.tables, self._sql, self._limit = tables, plan.query.sql, limit_bytes
        self._variants: dict[Message, dict[Message, None]] = {}
        self._sent: dict[Message, Sent] = {}
        for synopsis in plan.synopses:
            self._register(synopsis.messages)

    @property
    def nbytes(self) -> int:
        """Bytes of all messages that have arrived."""
        return sum(s.nbytes for s in self._sent.values())

    def tuples(self, table: str, condition: str | None) -> pa.Table:
        """The tuples of a table behind a filter."""
        return self.tables.behind(table, condition)

    def keys(self, attribute: Attribute, tuples: pa.Table) -> pa.Array:
        """See `key_values`."""
        return self.tables.key_values(attribute, tuples)

    def joined(self, relation: Relation, receivers: Sequence[tuple[Message, ...]]) -> Relation:
        """The relation with messages joined in; one that all receivers have drops the tuples without a partner.

        Raises
        ------
        MessageTooLarge
            If a message takes more bytes than the limit.
        """
        relations = [{m.relation for m in messages} for messages in receivers]
        for message in dict.fromkeys(m.relation for messages in receivers for m in messages):
            sent = self._receive(message)
            partners = _places(sent.keys, self.keys(message.receiver, relation.tuples))
            relation = Relation(relation.tuples, {**relation.partners, message: partners})
            if all(message in r for r in relations):
                relation = relation.filtered(partners >= 0)
        return relation

    def weights(self, weight: Weight, messages: Iterable[Message], relation: Relation) -> Weights:
        """The weight of every tuple, with those of its partners multiplied in."""
        own = self.tables.weights(weight, relation.tuples, self._sql)
        received = [self._sent[m.relation].weights[m].taken(relation.partners[m.relation]) for m in messages]
        return product([own, *received])

    def weight_range(self, message: Message) -> tuple[float, float]:
        """The least and the greatest weight of a message that has been sent."""
        found = self._sent[message.relation].weights[message]
        if found.values is None:
            return 0.0, 1.0
        least, most = found.values.min(initial=0), found.values.max(initial=0)
        return float(least) / found.scale, float(most) / found.scale

    def sent(self) -> Iterator[tuple[Message, Ints, Weights]]:
        """Keys and weights of every message that has arrived, in each of its variants."""
        for found in self._sent.values():
            for variant, weights in found.weights.items():
                yield variant, found.keys, weights

    def _register(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._register(message.messages)
            self._variants.setdefault(message.relation, {}).setdefault(message)

    def _receive(self, relation: Message) -> Sent:
        if relation not in self._sent:
            with observed(MESSAGE, relation_name(relation.table, relation.filter)) as seen:
                sent = self._sent[relation] = self._send(relation, list(self._variants[relation]))
                seen.rows, seen.bytes_held = len(sent.keys), sent.nbytes
        return self._sent[relation]

    def _send(self, message: Message, variants: Sequence[Message]) -> Sent:
        relation = Relation(self.tuples(message.table, message.filter))
        known = self.keys(message.sender, relation.tuples).is_valid().to_numpy(zero_copy_only=False)
        relation = self.joined(relation.filtered(known), [v.messages for v in variants])
        keys, which = np.unique(self.keys(message.sender, relation.tuples).to_numpy(), return_inverse=True)
        if self._limit is not None and len(keys) > self._limit // (8 * (1 + len(variants))):
            raise MessageTooLarge(message, self._limit, self._sql)
        return Sent(
            keys,
            {v: totals(self.weights(v.weight, v.messages, relation), which, len(keys)) for v in variants},
        )


def _places(keys: Ints, wanted: pa.Array) -> Ints:
    """Where each wanted key stands among ascending keys, -1 for one that does not, and for NULL."""
    values = wanted.fill_null(0).to_numpy()
    places = np.searchsorted(keys, values)
    places[places == len(keys)] = 0
    found = wanted.is_valid().to_numpy(zero_copy_only=False)
    found &= (keys[places] == values) if len(keys) else False
    return np.where(found, places, -1)
