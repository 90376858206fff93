"""Arithmetic in the two finite fields that hash families are built on, elementwise on arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

P61 = (1 << 61) - 1
_LOW61 = np.uint64(P61)
_LOW32 = np.uint64(0xFFFFFFFF)


def multiply61(a: Words, b: Words) -> Words:
    """a * b modulo 2^61 - 1, not quite reduced: below 2^63. Both factors are below 2^61."""
    a_high, a_low = a >> np.uint64(32), a & _LOW32
    b_high, b_low = b >> np.uint64(32), b & _LOW32
    low = a_low * b_low
    middle = a_low * b_high + a_high * b_low
    # 2^64 = 8 and middle * 2^32 = (middle >> 29) * 2^61 + ..., with 2^61 = 1.
    total = (a_high * b_high) << np.uint64(3)
    total += middle >> np.uint64(29)
    total += (middle & np.uint64((1 << 29) - 1)) << np.uint64(32)
    total += low >> np.uint64(61)
    total += low & _LOW61
    return total


def fold61(x: Words) -> Words:
    """x modulo 2^61 - 1, fully reduced; x is below 2^64."""
    x = (x & _LOW61) + (x >> np.uint64(61))
    return np.where(x >= _LOW61, x - _LOW61, x)


def cubes(domain_bits: int) -> Words:
    """i^3 in GF(2^domain_bits) for every i."""
    x = np.arange(1 << domain_bits, dtype=np.uint64)
    return multiply_gf2(multiply_gf2(x, x, domain_bits), x, domain_bits)


# The lower terms of an irreducible polynomial of each degree 2 ... 20.
IRREDUCIBLE = {
    2: 0x3, 3: 0x3, 4: 0x3, 5: 0x5, 6: 0x3, 7: 0x3, 8: 0x1B, 9: 0x11, 10: 0x9, 11: 0x5,
    12: 0x9, 13: 0x1B, 14: 0x21, 15: 0x3, 16: 0x2B, 17: 0x9, 18: 0x9, 19: 0x27, 20: 0x9,
}  # fmt: skip


def multiply_gf2(a: Words, b: Words, degree: int) -> Words:
    """a * b in GF(2^degree), elementwise, by shift and add."""
    product = np.zeros_like(a)
    top, one = np.uint64(degree - 1), np.uint64(1)
    mask, reduction = np.uint64((1 << degree) - 1), np.uint64(IRREDUCIBLE[degree])
    for bit in range(degree - 1, -1, -1):
        carry = (product >> top) & one
        product = ((product << one) & mask) ^ (carry * reduction)
        product ^= ((b >> np.uint64(bit)) & one) * a
    return product
