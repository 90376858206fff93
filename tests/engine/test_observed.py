"""The recorder: operators nest as they run, each with what it took itself; without a run nothing is kept."""

from dataclasses import dataclass, field

import pytest

from skimql.engine.observed import Measured, Recorder, metered, observed, reads


@dataclass
class Steps:
    """A meter whose clock is set by hand."""

    now: float = 0.0
    seen: list = field(default_factory=list)

    def mark(self):
        return self.now

    def since(self, mark, own):
        return Measured(self.now - mark, 10.0 * (self.now - mark))


def test_an_operator_has_what_it_took_without_its_inputs():
    meter = Steps()
    recorder = Recorder(meter)
    with recorder.recording():
        with observed("scan", "a") as outer:
            meter.now += 1
            with observed("message", "b") as inner:
                assert metered() is inner
                meter.now += 5
            meter.now += 2
            outer.rows = 7
        with observed("estimate"):
            pass
    scan, estimate = recorder.taken()
    assert (scan.actual.rows, scan.actual.cpu_seconds, scan.runs) == (7, 3.0, 1)
    assert (scan.inputs[0].of, scan.inputs[0].actual.cpu_seconds) == ("b", 5.0)
    assert estimate.actual.cpu_seconds == 0.0
    assert recorder.taken() == ()


def test_what_an_operator_says_that_it_read_counts():
    recorder = Recorder()
    with recorder.recording(), observed("load", "s"):
        reads(3)
        reads(4)
    (load,) = recorder.taken()
    assert (load.actual.bytes_read, load.actual.cpu_seconds) == (7.0, None)


def test_an_operator_that_fails_is_recorded_and_does_not_stay():
    recorder = Recorder()
    with recorder.recording():
        with pytest.raises(ValueError, match="broken"), observed("scan", "a"):
            raise ValueError("broken")
        assert recorder.running is None
    assert [o.name for o in recorder.taken()] == ["scan a"]


def test_without_a_run_nothing_is_recorded_or_measured():
    with observed("scan", "a") as seen:
        seen.rows = 1
        reads(5)
        assert metered() is None
    assert seen.seconds is None
