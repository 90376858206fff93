"""Where the sketches of a plan are made, and so their hash family."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.errors import UnsupportedQuery
from skimql.optimizer.choose import choose
from skimql.optimizer.route import FOLDED, TABULATION, family_parameters, obstacle, routed, sentence, set_bits


def plan(text, buckets=4096):
    return choose(query(text, XYZ), 1, 11, buckets)


COUNTED = plan("SUM(n) FROM x JOIN y ON x.id = y.id")


def test_arrow_takes_proven_hashes_and_the_jvm_its_own():
    assert routed(COUNTED, "arrow").family == TABULATION
    jvm = routed(COUNTED, "jvm")
    assert jvm.family != TABULATION
    assert ("5-wise" in sentence(routed(COUNTED, "arrow")), "measured" in sentence(jvm)) == (True, True)
    assert set(family_parameters(jvm)) == ({"fine_bits"} if jvm.family == FOLDED else set())


def test_what_the_jvm_cannot_make_is_refused_there_and_goes_over_arrow_else():
    agms = query("COUNT(*) FROM x JOIN y ON x.id = y.id USING agms", XYZ)
    made = choose(agms, 1, 11, 128)
    if obstacle(made) is None:
        made = choose(agms, 1, 1001, 1 << 20)
    assert obstacle(made)
    with pytest.raises(UnsupportedQuery) as fault:
        routed(made, "jvm")
    assert fault.value.code == "SKIMQL_ROUTE"
    assert routed(made, "auto").family == TABULATION


def test_sets_are_told_apart_by_as_few_bits_as_will_do():
    assert [2 ** set_bits(n) >= n for n in (1, 2, 3, 9)] == [True] * 4
