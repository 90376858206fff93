"""What py4j and PySpark print by themselves where a JVM ends in the middle of a call: our own error says it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext


def quiet_session(context: SparkContext) -> None:
    """Nothing of the end of its JVM on stderr, for a session that we have started."""
    logging.getLogger().addFilter(_tells_more)
    server = context._accumulatorServer
    handle_error = server.handle_error

    def told(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), (EOFError, OSError)):
            handle_error(request, address)

    # The connection by which accumulators come ends with the JVM, and that is printed with a traceback.
    server.handle_error = told  # type: ignore[assignment, method-assign]


@contextmanager
def quiet_gateway() -> Iterator[None]:
    """Nothing of the end of a JVM in the log within, whoever has started it; the user's logging is as it was after."""

    def tells_more(record: logging.LogRecord) -> bool:
        return _tells_more(record)

    logging.getLogger().addFilter(tells_more)
    try:
        yield
    finally:
        logging.getLogger().removeFilter(tells_more)


def _tells_more(record: logging.LogRecord) -> bool:
    """Whether a record is another than py4j's of a JVM that does not answer, which goes to the root logger."""
    return record.module != "java_gateway" or record.msg != "Exception while sending command."
