"""The choice among candidates: what is taken on which data, what is refused and why."""

import numpy as np
import pytest
from support.column_figures import chain, counted, exact_relation, one_class

from skimql.optimizer.candidates.enumerate import NoMethod, Objective, choose_method
from skimql.optimizer.messages import JoinClass, JoinTree
from skimql.optimizer.methods import CANDIDATES
from skimql.optimizer.prediction.samples import SampledMessages

BIG = Objective(relative_error=0.05)


def zipf(z, shift=0, keys=4000, tuples=2_000_000):
    weights = 1.0 / np.arange(1, keys + 1) ** z
    return np.roll(np.rint(tuples * weights / weights.sum()).astype(int) + 1, shift)


def reasons(choice, method):
    return [c.refused for c in choice.candidates if c.method == method and c.refused]


def test_a_table_of_few_keys_is_sent_exactly():
    choice = choose_method(one_class(2), [counted(2e9, 1000), counted(1e6, 1000)], BIG)
    assert choice.taken.method == "exact"
    assert [(f.sender, f.receiver) for f in choice.taken.residual.folds] == [(1, 0)]
    assert choice.taken.nbytes == pytest.approx(1.05 * 16_000)
    assert choice.edges[0].what == "exact message"
    assert "1K keys, 16 KB" in choice.edges[0].why


def test_a_message_of_a_million_and_a_half_keys_is_neither_free_nor_sent():
    choice = choose_method(one_class(2), [counted(6e6, 1.5e6), counted(1.5e6, 1.5e6)], BIG)
    assert choice.taken.method in ("key_sample", "two_level", "sampled_messages")
    assert any("1.5M keys are 24 MB: above skimql.fold_bytes" in r for r in reasons(choice, "exact"))


def test_a_chain_of_three_large_tables_samples_one_class():
    choice = choose_method(chain(3), [counted(1e8, 1e7), counted(1e8, 1e7, 1e7), counted(1e8, 1e7)], BIG)
    taken = choice.taken
    assert taken.method == "sampled_messages"
    assert taken.half_width(0.95) <= 0.05
    assert {s.vertex for s in taken.sample.steps} == {0, 1, 2}
    assert sorted(e.what for e in choice.edges) == ["joined exactly within the sample", "sampled messages"]
    assert {c.sample.joined for c in choice.candidates if c.method == "sampled_messages" and c.sample} == {
        0,
        1,
    }


def test_a_folded_dimension_leaves_the_two_large_tables():
    tree = JoinTree(3, (JoinClass("big", (0, 1)), JoinClass("dim", (0, 2))))
    choice = choose_method(tree, [counted(1e8, 1e7, 100), counted(1e8, 1e7), counted(100, 100)], BIG)
    folded = [c for c in choice.candidates if c.residual.folds and c.method == "sampled_messages"]
    assert folded
    assert folded[0].residual.vertices == (0, 1)


def test_several_tables_on_one_key_are_sampled_together():
    tree = one_class(4)
    choice = choose_method(tree, [counted(1e8, 1e7)] * 4, BIG)
    assert choice.taken.method == "sampled_messages"
    assert [s.joined for s in choice.taken.sample.steps] == [0] * 4
    convolution = [c for c in choice.candidates if c.method == "convolution"]
    assert all(c.refused for c in convolution)


def test_on_streams_flat_keys_are_sampled_and_no_table_is_read_beforehand():
    flat = np.full(20_000, 5)
    asked = Objective(size_bytes=65_536, ordered=False)
    choice = choose_method(one_class(3), [exact_relation(flat)] * 3, asked)
    assert choice.taken.method in ("key_sample", "two_level")
    assert "sampled_messages" not in {c.method for c in choice.candidates}
    assert any("cannot be read beforehand" in r for r in reasons(choice, "exact"))


def test_a_static_table_beside_streams_is_sent_exactly():
    asked = Objective(size_bytes=65_536, ordered=False, static=(1,))
    choice = choose_method(one_class(2), [counted(1e8, 1e6), counted(1000, 1000)], asked)
    assert choice.taken.method == "exact"


def test_skew_is_taken_out_as_dense_keys():
    asked = Objective(size_bytes=32_768)
    choice = choose_method(one_class(2), [exact_relation(zipf(1.0)), exact_relation(zipf(1.0, 100))], asked)
    assert choice.taken.sample is not None
    assert choice.taken.sample.dense_keys[0].size > 0
    by_method = {c.method: c.error for c in choice.candidates if not c.refused}
    assert by_method["hash"] > 10 * choice.taken.error
    assert by_method["key_sample"] > 10 * choice.taken.error


def test_with_a_target_the_cheapest_that_meets_it_is_taken():
    tables = [exact_relation(zipf(0.5)), exact_relation(zipf(0.5, 50))]
    choice = choose_method(one_class(2), tables, Objective(relative_error=0.1))
    able = [c for c in choice.candidates if not c.refused]
    assert choice.taken.cost.seconds <= 1.11 * min(c.cost.seconds for c in able)
    assert all(c.half_width(0.95) <= 0.1 for c in able)


def test_a_tighter_target_takes_more_bytes():
    tables = [counted(1e8, 1e7), counted(1e8, 1e7)]
    sizes = [
        choose_method(
            one_class(2), tables, Objective(relative_error=e, method="sampled_messages")
        ).taken.nbytes
        for e in (0.1, 0.03, 0.01)
    ]
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[2] / sizes[1] == pytest.approx(9, rel=0.25)  # the error falls with the square root


@pytest.mark.parametrize("size", [4_096, 65_536, 1_000_000])
def test_nothing_takes_more_than_the_size(size):
    choice = choose_method(
        chain(3), [counted(1e6, 1e5), counted(1e6, 1e5, 1e5), counted(1e6, 1e5)], Objective(size_bytes=size)
    )
    assert choice.taken.nbytes <= size
    assert all(c.nbytes <= size for c in choice.candidates if not c.refused)


@pytest.mark.parametrize(
    "method", ["hash", "skimmed", "agms", "key_sample", "two_level", "sampled_messages", "exact"]
)
def test_a_forced_method_is_honoured(method):
    tables = [exact_relation(zipf(0.5)), exact_relation(zipf(0.5, 50))]
    choice = choose_method(one_class(2), tables, Objective(size_bytes=200_000, method=method))
    assert choice.taken.method == method
    assert {r for c in choice.candidates if c.method != method for r in [c.refused]} <= {
        f"USING {method}"
    } | {c.refused for c in choice.candidates if c.refused.startswith("message of")}


def test_agms_sketches_are_sized_for_an_error_as_far_as_anybody_waits():
    tables = [exact_relation(zipf(0.5)), exact_relation(zipf(0.5, 50))]
    asked = Objective(relative_error=0.1, method="agms")
    taken = choose_method(one_class(2), tables, asked).taken
    assert (taken.method, taken.half_width(0.95) <= 0.1) == ("agms", True)
    with pytest.raises(NoMethod) as fault:
        choose_method(
            one_class(2), tables, Objective(relative_error=0.1, method="agms", max_exact_seconds=0.5)
        )
    assert "which every tuple moves, take" in reasons(fault.value, "agms")[0]


@pytest.mark.parametrize("method", ["hash", "key_sample", "two_level"])
def test_a_forced_method_that_does_not_apply_is_refused(method):
    tables = [counted(1e8, 1e7), counted(1e8, 1e7, 1e7), counted(1e8, 1e7)]
    with pytest.raises(NoMethod, match=f"USING {method}") as fault:
        choose_method(chain(3), tables, Objective(size_bytes=200_000, method=method))
    assert fault.value.candidates


def test_a_target_out_of_reach_is_left_to_the_exact_run():
    tables = [counted(1e8, 1e7), counted(1e8, 1e7, 1e7), counted(1e8, 1e7)]
    choice = choose_method(chain(3), tables, Objective(relative_error=1e-5, max_bytes=1 << 20))
    assert choice.taken.method == "exact_run"
    assert any("misses 1e-05" in r for r in reasons(choice, "sampled_messages"))
    others = tuple(m for m in CANDIDATES if m != "exact_run")
    with pytest.raises(NoMethod, match="misses"):
        choose_method(chain(3), tables, Objective(relative_error=1e-5, max_bytes=1 << 20, methods=others))


def test_small_tables_are_answered_exactly():
    choice = choose_method(one_class(2), [counted(5000, 1000), counted(5000, 1000)], BIG)
    assert choice.taken.error == 0.0


def test_what_cannot_be_cheaper_is_not_sized(monkeypatch):
    monkeypatch.setattr(SampledMessages, "plan", lambda *_: pytest.fail("sized"))
    choice = choose_method(one_class(2), [counted(5000, 1000), counted(5000, 1000)], BIG)
    (why,) = reasons(choice, "sampled_messages")
    assert "CPU s at the least" in why
    assert choice.taken.name in why


def test_an_exact_run_of_hours_is_refused_and_a_setting_allows_it():
    tables = [counted(1e7, 10), counted(1e7, 10)]
    choice = choose_method(one_class(2), tables, BIG)
    (why,) = reasons(choice, "exact_run")
    assert "would put out 1e+13 joined tuples, in 14 hours of CPU: above skimql.max_exact_seconds" in why
    assert choice.taken.method != "exact_run"
    patient = Objective(1e-9, methods=("exact_run",), max_exact_seconds=100_000)
    assert choose_method(one_class(2), tables, patient).taken.method == "exact_run"


@pytest.mark.parametrize("method", ["key_sample", "two_level", "sampled_messages"])
@pytest.mark.parametrize("error", [0.1, 0.01])
def test_the_size_is_the_least_that_meets_the_target_or_a_tenth_more(method, error):
    tables = [exact_relation(zipf(0.5)), exact_relation(zipf(0.5, 50))]
    taken = choose_method(one_class(2), tables, Objective(error, method=method)).taken
    assert taken.half_width(0.95) <= error
    smaller = Objective(size_bytes=int(taken.nbytes / 1.15), method=method)
    assert choose_method(one_class(2), tables, smaller).taken.half_width(0.95) > error


def test_what_was_assumed_is_said():
    choice = choose_method(chain(3), [counted(1e6, 1e5), counted(1e6, 1e5, 1e5), counted(1e6, 1e5)], BIG)
    assert any("geometric weights" in a for a in choice.assumptions)
    assert any("independent" in a for a in choice.assumptions)


def test_an_objective_asks_for_something():
    with pytest.raises(ValueError, match="error target or a size"):
        Objective()
    with pytest.raises(ValueError, match="a method is one of"):
        Objective(size_bytes=1, method="magic")


def test_the_choice_is_the_same_every_time():
    tables = [exact_relation(zipf(1.0)), exact_relation(zipf(1.0, 100))]
    first, second = (choose_method(one_class(2), tables, Objective(size_bytes=20_000)) for _ in range(2))
    assert [(c.name, c.nbytes, c.error) for c in first.candidates] == [
        (c.name, c.nbytes, c.error) for c in second.candidates
    ]
