"""The errors of py4j, over which a Spark of this process is spoken to; a client of Spark Connect may be without it."""

from __future__ import annotations

try:
    from py4j.protocol import Py4JError as Py4JError
    from py4j.protocol import Py4JJavaError as Py4JJavaError
    from py4j.protocol import Py4JNetworkError as Py4JNetworkError
except ImportError:

    class Py4JError(Exception):  # type: ignore[no-redef]
        """Raised by nobody."""

    class Py4JJavaError(Py4JError):  # type: ignore[misc, no-redef]
        """Raised by nobody."""

    class Py4JNetworkError(Py4JError):  # type: ignore[misc, no-redef]
        """Raised by nobody."""
