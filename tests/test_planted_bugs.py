"""The tests see: each bug planted here turns the test that guards against it red."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from support.seeds import ManySeeds
from support.tables import register

from skimql.sketches.joins import convolution, estimate

pytestmark = pytest.mark.spark

SELF = "SELECT APPROXIMATE COUNT(*) FROM d a JOIN e b ON a.k = b.k"


def check_right_count(session):
    """500 keys, each 3 times against each twice: 3,000 pairs, in the interval and close."""
    session.table("d", session.spark.sql("SELECT id % 500 AS k FROM range(1500)"))
    session.settings = session.settings.with_text({"sparse": "false"})
    session.table("e", session.spark.sql("SELECT CAST(id % 500 AS INT) AS k FROM range(1000)"))
    answer = session.sql(SELF)
    assert answer.low <= 3000 <= answer.high
    assert abs(answer.value - 3000) < 300


def check_nulls_stay_out(session):
    register(session, d=("k INT", [(None,), (None,), (1,)]), e=("k INT", [(None,), (1,)]))
    assert session.sql(SELF).value == 1


def test_without_a_bug_all_is_well(session):
    check_right_count(session)
    check_nulls_stay_out(session)


def test_other_xi_functions_on_the_two_sides_are_seen(session, monkeypatch):
    from skimql.engine.execution import scan

    original = scan.sketch_plan

    def other_on_e(synopsis, seed, *family, **parameters):
        return original(synopsis, seed + (synopsis.table == "e"), *family, **parameters)

    monkeypatch.setattr(scan, "sketch_plan", other_on_e)
    # The library itself refuses to multiply them; take that guard away too.
    with pytest.raises(ValueError, match="families"):
        check_right_count(session)
    for module in (convolution, estimate):
        monkeypatch.setattr(module, "check_join", lambda specs, edges: [True, False])
    with pytest.raises(AssertionError):
        check_right_count(session)


def test_a_doubled_estimate_is_seen(session, monkeypatch):
    original = estimate.join_rows
    monkeypatch.setattr(estimate, "join_rows", lambda sketches, edges: 2 * original(sketches, edges))
    with pytest.raises(AssertionError):
        check_right_count(session)


def test_joining_nulls_is_seen(session, monkeypatch):
    from skimql.engine.execution import scan

    original = scan.key_column
    monkeypatch.setattr(scan, "key_column", lambda a: F.coalesce(original(a), F.lit(0).cast("bigint")))
    with pytest.raises(AssertionError):
        check_nulls_stay_out(session)


def test_hashing_int_against_bigint_is_seen(session, monkeypatch):
    from skimql.engine.execution import scan

    def hashed_as_it_is(attribute):
        return F.xxhash64(F.expr(attribute.keys[0]))

    monkeypatch.setattr(scan, "key_column", hashed_as_it_is)
    with pytest.raises(AssertionError):
        check_right_count(session)


def test_a_dropped_sign_is_seen(session, monkeypatch):
    """In process, where a patch reaches the kernel."""
    session.settings = session.settings.with_text({"sparse": "false"})
    session.table("d", session.spark.sql("SELECT id % 5000 AS k FROM range(20000)"))
    session.table("e", session.spark.sql("SELECT id % 5000 AS k FROM range(10000)"))
    many = ManySeeds(session, SELF)

    def right():
        estimate = many.answer(2).estimate
        assert estimate.low <= 40_000 <= estimate.high

    right()
    original = convolution.ConvolutionSpec.slots
    monkeypatch.setattr(convolution.ConvolutionSpec, "slots", lambda self, keys: original(self, keys) & ~1)
    with pytest.raises(AssertionError):
        right()
