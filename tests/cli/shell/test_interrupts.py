"""Ctrl-C is noted, and looked at where somebody waits."""

from __future__ import annotations

import os
import signal

import pytest

from skimql.cli.shell.interrupts import Interrupts


@pytest.fixture
def interrupts():
    before = signal.getsignal(signal.SIGINT)
    made = Interrupts()
    made.install()
    yield made
    signal.signal(signal.SIGINT, before)


def test_the_signal_is_noted_once(interrupts):
    assert not interrupts.take()
    os.kill(os.getpid(), signal.SIGINT)
    assert interrupts.take()
    assert not interrupts.take()
    interrupts.put_back()
    assert interrupts.take(1.0)
    os.kill(os.getpid(), signal.SIGINT)
    assert not interrupts.take(-1.0), "too long ago"


def test_a_read_that_waits_is_ended_by_it(interrupts):
    with pytest.raises(KeyboardInterrupt), interrupts.raised():
        os.kill(os.getpid(), signal.SIGINT)
    assert not interrupts.take()
