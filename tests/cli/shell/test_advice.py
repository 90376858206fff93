"""What would reach an error."""

from __future__ import annotations

from types import SimpleNamespace

from skimql.cli.shell.advice import reaching


def test_what_would_reach_an_error_is_told_with_its_cost():
    def candidate(method, width, seconds, refused=""):
        return SimpleNamespace(
            method=method, refused=refused, half_width=lambda _: width, cost=SimpleNamespace(seconds=seconds)
        )

    taken = candidate("hash", 0.04, 1.0)
    others = [
        candidate("two_level", 0.03, 8.0),
        candidate("agms", 0.01, 2.0, "too dear"),
        candidate("exact_run", 0.0, 40.0),
        candidate("skimmed", 0.5, 1.0),
    ]
    assert reaching([taken, *others], taken, 0.05, 0.95) == (
        "wider than asked; within 5 %: two_level, about 8.0 s of CPU (USING two_level), or EXACT, about 40.0 s of CPU"
        " (\\exact)"
    )
    assert reaching([taken], taken, 0.05, 0.95) == ""
