"""The last query as other statements."""

from __future__ import annotations

import pytest

from skimql import Answer, Estimate
from skimql.cli.shell import rewrite

JOIN = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b USING (k)"


@pytest.mark.parametrize(
    ("text", "without", "exact"),
    [
        (f"{JOIN};", JOIN, "EXACT SELECT COUNT(*) FROM a JOIN b USING (k)"),
        (f"{JOIN} ERROR WITHIN 5% AT CONFIDENCE 95%", JOIN, "EXACT SELECT COUNT(*) FROM a JOIN b USING (k)"),
        (f"{JOIN} USING hash SIZE 64 KB OPTIONS (rows = 7, sparse = false) SEED 7", f"{JOIN} USING hash OPTIONS (rows = 7, sparse = false) SEED 7", "EXACT SELECT COUNT(*) FROM a JOIN b USING (k)"),
        ("SELECT COUNT(*) FROM t WITH ERROR 0.05 BEHAVIOR 'strict'", "SELECT COUNT(*) FROM t BEHAVIOR 'strict'", "EXACT SELECT COUNT(*) FROM t"),
        ("SELECT t.size, error FROM t WHERE error > 5 ORDER BY size LIMIT 3", "SELECT t.size, error FROM t WHERE error > 5 ORDER BY size LIMIT 3", "SELECT t.size, error FROM t WHERE error > 5 ORDER BY size LIMIT 3"),
        ("EXACT SELECT 1", "EXACT SELECT 1", "EXACT SELECT 1"),
    ],
)  # fmt: skip
def test_clauses_go_and_the_rest_stays(text, without, exact):
    assert rewrite.without_accuracy(text) == without
    assert rewrite.exact(text).replace("EXACT EXACT", "EXACT") == exact


def answer(value, low, high):
    return Answer(("n",), ((Estimate(value, low, high, 0.95, True, "theorem"),),))


def test_tighter_is_half_of_what_was_reached():
    assert rewrite.tighter(f"{JOIN} SIZE 1 KB", answer(100, 90, 120), 0.05) == f"{JOIN} ERROR WITHIN 10%"
    assert rewrite.tighter(JOIN, Answer(("n",), ((3,),), exact=True), 0.05) is None
    assert rewrite.tighter(JOIN, None, 0.05) == f"{JOIN} ERROR WITHIN 2.5%"
