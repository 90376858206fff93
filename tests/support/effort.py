"""Effort that is the same on every machine, under any load: calls, not seconds."""

from __future__ import annotations

import sys
from contextlib import contextmanager


class Calls:
    """How many calls there were: of functions of Python's and of C's, or of the JVM.

    Attributes
    ----------
    number : int
    """

    def __init__(self):
        self.number = 0


@contextmanager
def counted_calls():
    """Count the calls of this thread meanwhile."""
    calls = Calls()

    def count(frame, event, argument):
        calls.number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)


@contextmanager
def jvm_calls():
    """Count what Python asks the JVM meanwhile, but for objects that it gives back."""
    from py4j.clientserver import ClientServerConnection

    calls, send = Calls(), ClientServerConnection.send_command

    def sending(connection, command):
        calls.number += not command.startswith("m\n")
        return send(connection, command)

    ClientServerConnection.send_command = sending
    try:
        yield calls
    finally:
        ClientServerConnection.send_command = send
