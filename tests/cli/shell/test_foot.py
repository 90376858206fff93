"""The line under a result."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from support.kept_catalog import QUERY, two_sketches

from skimql import Answer, Estimate, Session
from skimql.cli.shell.foot import age_text, foot, tables_read


def answer(kind, rows=None):
    operator = SimpleNamespace(kind=kind, inputs=(), actual=SimpleNamespace(rows=rows))
    plan = SimpleNamespace(
        synopses=(),
        sample=None,
        query=SimpleNamespace(graph=SimpleNamespace(vertices=(SimpleNamespace(table="a"),))),
    )
    attempt = SimpleNamespace(attempt=SimpleNamespace(plan=plan), operators=(operator,), nbytes=4096)
    cell = Estimate(100.0, 80.0, 120.0, 0.95, False, "theorem")
    return Answer(("n",), ((cell,),), plan=plan, method="key_sample", attempts=(attempt,))


def test_a_sample_tells_its_share_of_the_tuples():
    own = answer("sample", 250)
    assert tables_read(own) == ["a"]
    assert foot(own, {"a": 1000.0}, 1.5, 0.25) == (
        "95 % interval; key sample, 4 KB; 250 of 1,000 (25 %) tuples kept; not certified; 1.50 s, 0.25 s of CPU here"
    )
    assert "250 tuples kept" in foot(own, {"a": None}, 1.5, 0.25)


def test_a_scan_reads_all():
    assert "1,000 tuples read, all there are" in foot(answer("scan", 900), {"a": 1000.0}, 1.5, 0.25)


def test_what_is_kept_needs_no_scan_and_has_an_age(tmp_path):
    own = Session(catalog=two_sketches(tmp_path)).sql(QUERY)
    assert tables_read(own) == []
    told = foot(own, {}, 0.02, 0.02, now=datetime(2026, 11, 28, 3, tzinfo=UTC))
    assert told == "95 % interval; hash 11 x 512, 176 KB; no scan; built 3 h ago; 0.02 s, 0.02 s of CPU here"


def test_spark_has_rows():
    assert foot(Answer(("a",), ((1,),), exact=True), {}, 1.0, 0.1) == "1 row; 1.00 s, 0.10 s of CPU here"


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (600, "10 min"), (93_600, "26 h"), (5e6, "58 days")]
)
def test_ages(seconds, text):
    assert age_text(seconds) == text


def test_of_an_exact_run_it_is_not_said_that_nothing_was_read():
    own = replace(answer("exact run", 1), plan=None, exact=True, method="exact_run")
    own.attempts[0].attempt.plan = None
    assert "no scan" not in foot(own, {}, 1.0, 0.1)
