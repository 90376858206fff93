"""The terms of large values beside those of all: one more synopsis in the same scan."""

from support.questions import query
from support.schemas import schema, table

from skimql.engine.execution.large_values import with_large
from skimql.optimizer.candidates.first_sample import ClassSample
from skimql.optimizer.choose import choose
from skimql.optimizer.plan import ValueDraw, Weight

SCHEMA = schema(table("r", k="bigint", x="bigint", y="bigint"), table("s", k="bigint"))
DRAWS = ValueDraw(0, "`x`", 3.0, 20.0), ValueDraw(0, "`y`", 4.0, 20.0), ValueDraw(0, "`absent`", 4.0, 20.0)


def test_each_summed_expression_that_is_drawn_for_has_a_term_of_its_large_values():
    asked = query("COUNT(*), SUM(r.x), SUM(r.y), AVG(r.x) FROM r JOIN s ON r.k = s.k", SCHEMA)
    plan = choose(asked, 1, 0, 0, sample=ClassSample(0, 0.1, row_rates=(0.1, 0.1), value_draws=DRAWS))
    terms = tuple(dict.fromkeys(t.synopses for a in plan.aggregates for t in (*a.total, *a.presence)))
    more, every, large = with_large(plan, terms)
    assert every[: len(terms)] == terms
    assert len(every) == len(terms) + 2
    weights = {plan.synopses[terms[n][0]].weight: draw for n, (draw, _) in large.items()}
    assert weights == {Weight("`x`"): 0, Weight("`y`"): 1}
    for position, (draw, of_large) in large.items():
        own = more.synopses[every[of_large][0]]
        assert own.weight.expression.startswith("CASE WHEN abs(")
        assert str(DRAWS[draw].least) in own.weight.expression
        assert every[of_large][1:] == terms[position][1:]
        assert any(every[of_large][0] in s.synopses for s in more.scans if s.table == "r")
