"""What is Spark's stays Spark's: the same plans, rows, errors and places, with the extension and without."""

from __future__ import annotations

from support.extension import enabled

from benchmarks.untouched import ordinary, outcomes

# Of the whole list, which `python -m benchmarks.surfaces` runs: those with our words, and some of every other kind but
# those that make and drop tables and functions, one after the other.
MOST, EVERY = 60, 12
TABLES = slice(206, 313)


def test_statements_of_sparks_are_as_they_were(spark, tmp_path):
    asked = ordinary()
    sample = asked[:MOST] + [*asked[: TABLES.start], *asked[TABLES.stop :]][MOST::EVERY]
    without = outcomes(spark, sample)
    with enabled(spark, tmp_path):
        having = outcomes(spark, sample)
    assert [(a, w, h) for a, w, h in zip(sample, without, having, strict=True) if w != h] == []
    assert {"rows", "ParseException", "AnalysisException"} <= {o[0] for o in without}


def test_the_list_has_every_kind():
    asked = ordinary()
    assert len(asked) >= 400
    assert sum(args is not None for _, args in asked) >= 10
    assert sum(text.startswith("BEGIN") for text, _ in asked) >= 5
