"""With which sketches of its class a new one is not joined."""

from dataclasses import dataclass

import pytest

from skimql.engine.catalog.kinds.registry import KINDS
from skimql.engine.materialized.following import note_of_unlike, share_layout


@dataclass
class Kept:
    name: str
    method: str = "hash"
    seed: int = 1
    rows: int = 5
    buckets: int = 64

    @property
    def kind(self):
        return KINDS[self.method]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("hash", "convolution", True),
        ("agms", "agms", True),
        ("hash", "agms", False),
        ("hash", "key_sample", False),
    ],
)
def test_methods_that_share_a_layout(one, other, same):
    assert share_layout(one, other) is share_layout(other, one) is same


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (Kept("s", "agms"), "s (agms)"),
        (Kept("s", seed=2), "s (seed 2)"),
        (Kept("s", buckets=2048), "s (5 rows x 2,048 buckets)"),
    ],
)
def test_what_differs_is_told(kept, told):
    assert (
        note_of_unlike("hash", 1, 5, 64, [kept]) == f"as counters it is not joined with {told} of its class"
    )


def test_nothing_is_told_of_what_joins():
    assert note_of_unlike("hash", 1, 5, 64, [Kept("s"), Kept("t", "convolution")]) == ""
    assert note_of_unlike("sample_sketch", 1, 1, 64, [Kept("s")]) == "", "a sketch beside a sampled table"
    assert note_of_unlike("key_sample", 1, 1, 64, [Kept("s", "key_sample", buckets=9, rows=1)]) == ""


def test_of_many_three_are_told():
    note = note_of_unlike("hash", 1, 5, 64, [Kept(n, seed=2) for n in "abcde"])
    assert "a (seed 2), b (seed 2), c (seed 2) and 2 more" in note
