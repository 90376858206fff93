"""`skimql thrift`: Spark's Thrift server with SkimQL's statements, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import ipaddress
import sys
import threading

from .. import Settings, SkimqlError, demo_tables
from .request import Request
from .serve import signals

DONE, FAILED = 0, 1


def serve_thrift(request: Request, host: str, port: int) -> int:
    """Serve JDBC and ODBC clients; the exit code."""
    from ..engine.extension.thrift import serving

    stopped = threading.Event()
    tables = {name: str(path) for name, path in demo_tables().items()} if request.demo else {}
    tables |= dict(request.tables)
    try:
        with signals(stopped.set):
            settings = Settings().with_text(request.settings)
            with serving(host, port, request.conf, request.catalog, tables, settings) as taken:
                if not _is_loopback(host):
                    _say(f"note: whoever reaches {host} may ask, as who runs this: there is no password")
                _say(f"jdbc:hive2://{host}:{taken}/")
                stopped.wait()
    except SkimqlError as fault:
        _say(str(fault))
        return FAILED
    return DONE


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
