"""Spark of one session: started once, by one thread, given up, stopped and closed."""

from __future__ import annotations

import threading

import pytest

from skimql.engine.spark import session as spark_session
from skimql.engine.spark.own import OwnSpark
from skimql.errors import EnvironmentFault


class Spark:
    """What stands for a Spark session here."""

    stopped = 0

    def stop(self):
        self.stopped += 1


@pytest.fixture
def starts(monkeypatch):
    """The Spark sessions that are started; none runs before."""
    found = []

    def start(conf, given_up):
        found.append(Spark())
        return found[-1]

    monkeypatch.setattr(spark_session, "running_spark", lambda: None)
    monkeypatch.setattr(spark_session, "start_spark", start)
    monkeypatch.setattr(spark_session, "is_gone", lambda spark: bool(spark.stopped))
    monkeypatch.setattr(spark_session, "end_spark", Spark.stop)
    return found


def test_it_is_started_once_whoever_asks(starts):
    ours = OwnSpark(None, {})
    assert (ours.state, repr(ours)) == ("none", "Spark not started")
    threads = [threading.Thread(target=ours.needed) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(starts) == 1
    assert ours.state == "ready"
    assert ours.running() is starts[0]


def test_what_was_started_is_stopped_and_starts_anew_and_what_was_given_is_not(starts):
    calls = []
    ours, given = OwnSpark(None, {}), Spark()
    ours.stop(lambda: calls.append("before"), lambda: calls.append("behind"))
    assert not calls, "nothing was there"
    ours.needed()
    ours.stop(lambda: calls.append("before"), lambda: calls.append("behind"))
    assert calls == ["before", "behind"]
    assert starts[0].stopped == 1
    assert ours.needed() is starts[1]
    other = OwnSpark(given, {})
    other.stop(lambda: calls.append("never"), lambda: calls.append("never"))
    other.close(lambda: None)
    assert (given.stopped, "never" in calls) == (0, False)


def test_closed_it_says_so_and_closing_twice_is_no_fault(starts):
    ours = OwnSpark(None, {})
    ours.needed()
    for _ in range(2):
        ours.close(lambda: None)
    assert starts[0].stopped == 1
    with pytest.raises(EnvironmentFault, match="closed"):
        ours.needed()


def test_a_fault_of_a_stopped_spark_is_told_as_one(starts, monkeypatch):
    ours = OwnSpark(Spark(), {})
    monkeypatch.setattr(spark_session, "is_stopped", lambda spark: True)
    with pytest.raises(EnvironmentFault, match="was stopped"), ours.awake():
        raise RuntimeError("Answer from Java side is empty")
