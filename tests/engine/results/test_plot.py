"""A chart of an answer, with axes that only note what is drawn."""

import pytest

from skimql import Estimate, UnsupportedQuery
from skimql.engine.results.answer import Answer
from skimql.engine.results.plot import plot


class Axes:
    """Notes every call."""

    def __init__(self):
        self.calls = {}

    def __getattr__(self, name):
        return lambda *arguments, **options: self.calls.__setitem__(name, (arguments, options))


CELL = Estimate(10.0, 8.0, 13.0, 0.95, True, "theorem")
ANSWER = Answer(
    ("g", "n"),
    (("a", CELL), ("b", Estimate(5.0, 0.0, float("inf"), 0.95, False, "theorem"))),
    aggregated=(False, True),
)


def test_bars_have_their_values_intervals_and_groups():
    ax = plot(ANSWER, "N", Axes())
    assert ax.calls["bar"][0] == ([0, 1], [10.0, 5.0])
    below, above = ax.calls["errorbar"][1]["yerr"]
    assert (below[0], above) == (2.0, [3.0, 0.0])
    assert ax.calls["set_xticks"][0] == ([0, 1], ["a", "b"])


@pytest.mark.parametrize("column", ["g", "nosuch"])
def test_what_is_no_aggregate_is_not_drawn(column):
    with pytest.raises(UnsupportedQuery) as fault:
        plot(ANSWER, column, Axes())
    assert (fault.value.code, fault.value.hint) == ("SKIMQL_NOTHING_TO_PLOT", "n")
