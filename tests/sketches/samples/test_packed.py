"""Packed integers: nothing is lost, they take the bytes that were reckoned, and fewer never take more."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skimql.sketches.samples.packed import (
    PackedColumn,
    PackedEntries,
    _low_bits,
    _unary_bytes,
    column_bytes,
    entry_bytes,
    most_within,
)

ENDS = (-(1 << 63), (1 << 63) - 1)
NUMBERS = st.one_of(st.integers(0, 300), st.integers(*ENDS))


@given(st.lists(NUMBERS, max_size=60), st.booleans())
def test_a_column_comes_back_and_takes_the_bytes_that_its_span_says(numbers, ascending):
    values = np.array(sorted(numbers) if ascending else numbers, np.int64)
    packed = PackedColumn(values, ascending=ascending)
    assert packed.values().tolist() == values.tolist()
    span = max(numbers) - min(numbers) if numbers else 0
    assert packed.nbytes == column_bytes(values.size, span, ascending=ascending) <= values.nbytes


def test_no_other_number_of_low_bits_takes_less():
    sizes = [*range(70), *(round(1.31**n) for n in range(17, 80))]
    spans = sorted({0, 1, *(s + d for s in (round(1.37**n) for n in range(140)) for d in (-1, 0, 1))})
    for entries in sizes:
        for span in (s for s in spans if 0 <= s < 1 << 64):
            bits = span.bit_length()

            def nbytes(low, entries=entries, span=span, bits=bits):
                return -(-low * entries // 8) + (0 if low == bits else _unary_bytes(entries, span >> low))

            # Of equals the one that needs the least unary.
            assert _low_bits(entries, span) == min(range(bits, -1, -1), key=nbytes), (entries, span)


@given(st.lists(st.tuples(NUMBERS, st.integers(0, 50), st.integers(1, 9)), max_size=60), st.integers(0, 500))
def test_of_entries_in_any_order_the_most_that_fit_are_found(entries, size):
    columns = np.array(entries, np.int64).reshape(-1, 3).T
    columns = np.concatenate([columns, [[1 << (8 * (n % 5)) for n in range(len(entries))]]]).astype(np.int64)
    taken = most_within(columns, size, words=1)

    def nbytes(count):
        part = columns[:, :count]
        spans = [int(max(c)) - int(min(c)) if count else 0 for c in part.tolist()]
        return entry_bytes(count, spans[:3]) + 8 * count

    sizes = [nbytes(n) for n in range(len(entries) + 1)]
    assert sizes == sorted(sizes)
    assert taken == max(n for n, b in enumerate(sizes) if b <= size or n == 0)
    ordered = columns[:, np.argsort(columns[0], kind="stable")]
    packed = PackedEntries(ordered[:2], ordered[2:])
    assert packed.nbytes <= sizes[-1]
    keys, weights = packed.arrays()
    assert np.array_equal(np.concatenate([keys, weights]), ordered)


def test_keys_of_a_small_range_take_bits_and_not_words():
    keys = np.unique(np.random.default_rng(1).integers(0, 120_000, 5_000))
    assert PackedColumn(keys, ascending=True).nbytes < 0.9 * keys.size
    assert PackedColumn(np.full(1_000, 7)).nbytes == 0
