"""What a new sketch says of those of its class with which it is not joined."""

import pytest
from support.kept import kept

from skimql.engine.materialized.following import note_of_unlike, share_layout

FIRST = kept("a", "t", {"k": [1]}).head


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (("hash", 1, 11, 64), ""),
        (("convolution", 1, 11, 64), ""),
        (("hash", 1, 11, 32), "as counters it is not joined with a (11 rows x 64 buckets) of its class"),
        (("hash", 2, 11, 64), "as counters it is not joined with a (seed 1) of its class"),
        (("agms", 1, 11, 64), "it is not joined with a (hash) of its class"),
        (("key_sample", 1, 1, 9), "it is not joined with a (hash) of its class"),
        (("sample_sketch", 1, 1, 9), ""),
    ],
)
def test_what_keeps_a_new_sketch_from_another_is_told(new, said):
    assert note_of_unlike(*new, [FIRST]) == said


def test_of_many_some_are_named():
    others = [kept(name, "t", {"k": [1]}).head for name in "abcde"]
    said = note_of_unlike("hash", 1, 11, 32, others)
    assert said.count("64 buckets") == 3
    assert said.endswith("and 2 more of its class")


def test_hash_and_convolution_sketches_share_their_layout():
    assert share_layout("hash", "convolution")
    assert share_layout("agms", "agms")
    assert not share_layout("agms", "hash")
