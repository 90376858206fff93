"""A sketch as bytes, and back."""

import pytest

from skimql.sketches.start import (
    make_agms_sketch,
    make_convolution_sketch,
    make_exact_first,
    make_hash_sketch,
    make_key_sample,
    make_level_sketch,
)
from skimql.sketches.stored_form import MAGIC, Meaning, from_bytes, meaning_of, to_bytes

EMPTY = [
    make_hash_sketch(seed=3, buckets=16),
    make_agms_sketch("k", seed=3, s1=4),
    make_level_sketch(seed=3, buckets=16),
    make_key_sample(seed=3, capacity=8),
    make_exact_first(make_convolution_sketch(["a"], seed=3, buckets=16).spec),
]


@pytest.mark.parametrize("sketch", EMPTY, ids=lambda s: type(s).__name__)
def test_bytes_are_read_back_and_written_the_same(sketch):
    data = to_bytes(sketch)
    again = from_bytes(data)
    assert type(again) is type(sketch)
    assert to_bytes(again) == data


@pytest.mark.parametrize(
    "spoil",
    [lambda d: d[:-1], lambda d: b"x" + d, lambda d: d[: len(MAGIC)], lambda d: d.replace(b"16", b"61", 1)],
)
def test_damage_is_refused(spoil):
    with pytest.raises(ValueError):
        from_bytes(spoil(to_bytes(EMPTY[0])))


def test_what_the_numbers_mean_goes_with_them():
    meaning = Meaning(("bigint", "decimal(10,2)"), 100, "sums")
    assert meaning_of(to_bytes(EMPTY[0], meaning)) == meaning
    assert meaning_of(to_bytes(EMPTY[0])) is None
    assert to_bytes(from_bytes(to_bytes(EMPTY[0], meaning))) == to_bytes(EMPTY[0])
    with pytest.raises(ValueError, match="mean"):
        meaning_of(to_bytes(EMPTY[0], Meaning(("bigint",), 0)))
