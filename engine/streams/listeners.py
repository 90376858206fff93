"""Who is told of the batches of views."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from ...errors import SkimqlError
from ..catalog.catalog import Catalog
from ..results.answer import Answer
from .describe import select
from .store import continuous

Listener = Callable[[Answer], None]
_LOG = logging.getLogger("skimql")


def tell(catalog: Catalog, stream: str, listeners: Mapping[str, Sequence[Listener]]) -> None:
    """Tell who listens to the views of a stream that a batch of it is in."""
    for view in continuous(catalog).readers(stream) if listeners else ():
        for listener in listeners.get(view.name.lower(), ()):
            try:
                listener(select(catalog, view))
            except Exception as fault:
                said = fault.message if isinstance(fault, SkimqlError) else repr(fault)
                _LOG.warning("a listener of view %s failed: %s", view.name, said, exc_info=fault)
