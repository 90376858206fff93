"""How large an exact message may be, and what is raised where one is larger; neither needs Spark."""

from __future__ import annotations

from ...errors import BudgetExceeded
from ...optimizer.plan import Message

DEFAULT_LIMIT_BYTES = 8 << 20


class MessageTooLarge(BudgetExceeded):
    """An exact message that takes more bytes than it may; `relation` is the message."""

    default_code = "SKIMQL_MESSAGE_TOO_LARGE"

    def __init__(self, relation: Message, limit_bytes: int, sql: str) -> None:
        keys = ", ".join(relation.sender.keys)
        super().__init__(
            f"the keys {keys} of {relation.table} take more than {limit_bytes:,} bytes",
            sql=sql,
            hint="a larger skimql.fold_bytes",
        )
        self.relation = relation
