"""Exact messages: tables folded into their neighbours change no answer, with or without a sketch beside them."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest
from support.exact import exact_answers
from support.plans import own_of, together
from support.tables import folded, register

from skimql import DataError
from skimql.engine.execution.build import build
from skimql.engine.execution.message_limit import MessageTooLarge
from skimql.engine.execution.messages import Messages
from skimql.engine.results.answer import answer_plan
from skimql.engine.results.estimator import SketchJoin
from skimql.engine.sources.keys import with_key_types
from skimql.optimizer.choose import choose
from skimql.parser.statement import parse_statement

pytestmark = pytest.mark.spark

CHAIN = "FROM a JOIN b ON a.k = b.k JOIN c ON b.d = c.d"
SELECTS = [
    f"COUNT(*) AS n, SUM(a.v) AS v, SUM(c.w) AS w, AVG(b.u) AS u {CHAIN}",
    f"SUM(a.v * c.w) AS p, COUNT(c.w) AS n {CHAIN} WHERE c.w > 1 OR c.w IS NULL",
    f"SUM(c.m) AS money, AVG(c.x) AS x {CHAIN} WHERE b.u < 7",
    "COUNT(*) AS n, SUM(b.u) AS u FROM a JOIN b ON a.k = b.k JOIN a aa ON aa.k = b.k WHERE aa.v > 3",
]
ON_A_CHAIN = [(), (0,), (2, 1), (2, 0)]
ON_A_STAR = [(0,), (1,), (2,), (1, 2), (0, 1)]


@pytest.fixture
def chain(session):
    register(
        session,
        a=("k INT, v INT", [(i % 7 if i % 11 else None, i) for i in range(40)]),
        b=("k BIGINT, d STRING, u INT", [(i % 9, str(i % 5) if i % 6 else None, i % 10) for i in range(60)]),
        c=(
            "d STRING, w INT, m DECIMAL(6, 2), x DOUBLE",
            [(str(i % 4), None if i % 3 == 0 else i, Decimal(f"{i}.25"), i / 8) for i in range(12)],
        ),
    )
    return session


def planned(session, select, folds, **size):
    """The plan of a SELECT with some vertices folded."""
    query = session._resolved(parse_statement(f"SELECT APPROXIMATE {select}"))
    query = with_key_types(query, session.tables, True)
    residual = folded(query.graph, *folds)
    return choose(query, 1, 11, size.get("buckets", 64), size.get("sparse", True), residual)


def answered(session, plan):
    built = build(session.spark, plan, session.tables)
    return answer_plan(plan, SketchJoin(plan, built), 0.95)


def test_folding_changes_no_answer(chain):
    cases = [*product(SELECTS[:3], ON_A_CHAIN), *product(SELECTS[3:], ON_A_STAR)]
    plans = [planned(chain, *case) for case in cases]
    whole = together(plans)
    built = build(chain.spark, whole, chain.tables)
    for (select, folds), plan in zip(cases, plans, strict=True):
        assert plan.vertices == tuple(v for v in range(3) if v not in folds)
        answer = answer_plan(plan, SketchJoin(plan, own_of(plan, whole, built)), 0.95)
        (exact,) = exact_answers(chain, SELECTS)[select]
        values = [None if cell.value != cell.value else cell.value for cell in answer.rows[0]]
        assert values == [v if v is None else pytest.approx(float(v), rel=1e-12) for v in exact], (
            select,
            folds,
        )
        assert all(cell.exact for cell in answer.rows[0])


def test_a_folded_table_costs_no_variance(chain):
    """With everything folded into one table nothing is estimated, not even without exact maps."""
    plan = planned(chain, SELECTS[0], (2, 0), buckets=2, sparse=False)
    assert all(cell.exact for cell in answered(chain, plan).rows[0])
    plan = planned(chain, SELECTS[0], (), buckets=2, sparse=False)
    assert not any(cell.exact for cell in answered(chain, plan).rows[0])


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_products_of_weights_do_not_wrap(session, ansi):
    register(
        session,
        big=("k INT, v BIGINT", [(1, 1 << 40)]),
        other=("k INT, d INT, u BIGINT", [(1, 1, 1 << 40)]),
        third=("d INT", [(1,)]),
    )
    select = (
        "SUM(big.v * other.u) AS s FROM big JOIN other ON big.k = other.k JOIN third ON other.d = third.d"
    )
    session.spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(DataError, match="leaves 64 bits"):
            answered(session, planned(session, select, (0,)))
    finally:
        session.spark.conf.unset("spark.sql.ansi.enabled")


def test_a_message_has_a_limit(chain):
    plan = planned(chain, SELECTS[0], (0,))
    messages = Messages(chain.spark, plan, chain.tables, limit_bytes=16 * 6)
    with pytest.raises(MessageTooLarge, match="of a take more than 96 bytes"):
        messages.joined(chain.tables.frame("b"), [s.messages for s in plan.synopses if s.table == "b"])
