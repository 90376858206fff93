"""Waiting for what happens in its own time, on any machine under any load."""

from __future__ import annotations

import time


def wait_until(condition, seconds=300):
    """Return once `condition` holds; after that many seconds it never will."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
