"""How many tuples a sample of keys draws beside, one by one, so that no heavy key is left to its hash.

See `sketches.samples.dual_frame`. The more are drawn, the less a key can weigh that was not met; the draws are so many
that this is a small part of the asked error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

# What an unmet key weighs is at most this part of the asked error, if every table had its keys as often as on average.
PART = 1 / 16

# With more than this part of it an interval is never as narrow as was asked.
MOST_PART = 1 / 4

# More of a table is not drawn, unless it is drawn as a whole.
MOST_RATE = 0.25
LEAST_DRAWN = 16_384.0

# A table of no more tuples is drawn as a whole in any case, which tells the most tuples of a key; one of no more than
# so many where that is cheaper.
MOST_WHOLE, MOST_WHOLE_EVER = 300_000.0, 4e6
# The most tuples of a key are taken to be about so many times the mean.
SKEWED = 4.0

# Hits that have a key evaluated: fewer than `LEAST_HITS` have many evaluated by chance; more where keys of the usual
# number of tuples, so many as there are, would be met as often with more than this chance.
LEAST_HITS = 4
BY_CHANCE = 0.1
# No more hits, whatever the keys of a table: to reckon with them takes time by their square. Of few keys with many
# tuples all are evaluated then.
MOST_HITS = 40


@dataclass(frozen=True, slots=True)
class TupleDraws:
    """For each table of the sampled class the share of its tuples that is drawn, and the hits that evaluate a key.

    `drawn` tuples are expected in all, and `caps` are the most tuples of a key that are expected of each table.
    """

    rates: tuple[float, ...]
    hits: int
    drawn: float
    caps: tuple[float, ...]

    def largest(self, rate: float) -> float:
        """What a key that is not met can add to a COUNT, by its probability, if so many are sampled by their hash."""
        return _largest(self, rate)

    def largest_beside(self, member: int) -> float:
        """The most tuples in all other tables that a tuple which is drawn for its value has partners in."""
        from ...sketches.samples.dual_frame import DualFrame

        return DualFrame(1.0, self.rates, self.hits, self.drawn).largest_beside(member, self.caps)


@lru_cache(maxsize=1 << 12)
def _largest(draws: TupleDraws, rate: float) -> float:
    """See `TupleDraws.largest`: asked for the same sizes again with every search for a sample."""
    from ...sketches.samples.dual_frame import DualFrame

    return DualFrame(rate, draws.rates, draws.hits, draws.drawn).largest_product(draws.caps)


def tuple_draws(
    tuples: Sequence[float],
    keys: float,
    left: float,
    error: float,
    most: float = math.inf,
    part: float = PART,
    told: Sequence[float] = (),
    heaviest: Sequence[float] = (),
    most_whole: float = MOST_WHOLE,
    counted: Sequence[float] = (),
) -> TupleDraws:
    """The draws for a sample of keys.

    Parameters
    ----------
    tuples : sequence of float
        Of each table of the sampled class, behind its filter.
    keys : float
        Distinct keys that they have in common, at most.
    left : float
        Tuples of the join.
    error : float
        The asked relative error.
    most : float
        Most tuples of a table that may be drawn.
    part : float
        Of the asked error, that a key which is not met may add.
    told : sequence of float, optional
        Distinct keys of each table, infinite where nothing tells.
    heaviest : sequence of float, optional
        The most tuples that a key of each table is taken to have, infinite where nothing tells.
    most_whole : float
        A table of no more tuples is drawn as a whole.
    counted : sequence of float, optional
        The most tuples of a key of each table, where that is known without drawing any; infinite where it is not.
    """
    return _tuple_draws(
        tuple(tuples), keys, left, error, most, part, tuple(told), tuple(heaviest), most_whole, tuple(counted)
    )


@lru_cache(maxsize=1 << 12)
def _tuple_draws(
    tuples: tuple[float, ...],
    keys: float,
    left: float,
    error: float,
    most: float,
    part: float,
    told: tuple[float, ...],
    heaviest: tuple[float, ...],
    most_whole: float,
    counted: tuple[float, ...],
) -> TupleDraws:
    """See `tuple_draws`: asked for the same tables again with every search for a sample."""
    # Late: what kept sketches answer needs neither.
    from scipy import special

    from ...sketches.samples.dual_frame import DualFrame

    sizes = [max(t, 1.0) for t in tuples]
    nothing = [math.inf] * len(sizes)
    own = [
        min(k, s) if math.isfinite(k) else max(keys, 1.0) for k, s in zip(told or nothing, sizes, strict=True)
    ]
    # Of a table that is drawn as a whole the most tuples of a key are known; they are taken to be some times the usual.
    bounded = [math.isfinite(c) for c in counted] or [False] * len(sizes)
    whole = [s <= min(most_whole, most) and not b for s, b in zip(sizes, bounded, strict=True)]
    caps = [
        (h if math.isfinite(h) else max(SKEWED * s / max(keys, 1.0), 1.0)) if all_of_it else math.inf
        for s, h, all_of_it in zip(sizes, heaviest or nothing, whole, strict=True)
    ]
    caps = [c if b else cap for c, b, cap in zip(counted or nothing, bounded, caps, strict=True)]
    known = math.prod(c for c in caps if math.isfinite(c))
    others = [n for n, all_of_it in enumerate(whole) if not all_of_it and not bounded[n]]
    hits, drawn = LEAST_HITS, LEAST_DRAWN * (len(sizes) - sum(bounded))
    rates: tuple[float, ...] = ()
    for _ in range(4):
        # The largest product of tuples that are not met is (c / tables)^tables over the product of rates.
        unmet = DualFrame(0.0, (1.0,), hits, drawn).most_hits
        wanted = max(part * error * left, 1.0) / known
        product = (unmet / max(len(others), 1)) ** len(others) / wanted
        found = _rates([sizes[n] for n in others], product, most)
        rates = tuple(
            found[others.index(n)] if n in others else 1.0 if whole[n] else 0.0 for n in range(len(sizes))
        )
        drawn = sum(r * s for r, s in zip(rates, sizes, strict=True))
        usual = sum(r * s / k for r, s, k in zip(rates, sizes, own, strict=True))
        hits = LEAST_HITS
        while hits < MOST_HITS and max(own) * float(special.gammainc(hits, usual)) > BY_CHANCE:
            hits += 1
    return TupleDraws(rates, hits, drawn, tuple(caps))


def _rates(sizes: Sequence[float], product: float, most: float) -> list[float]:
    """Shares of tables with this product: of as many tuples of each, as far as the largest and least shares allow."""
    ends = [(min(LEAST_DRAWN / s, MOST_RATE), min(most / s, MOST_RATE)) for s in sizes]
    found = [math.nan] * len(sizes)
    free, left = list(range(len(sizes))), product
    while free:
        each = (left * math.prod(sizes[n] for n in free)) ** (1.0 / len(free))
        # Where one cannot have as many, the others have more.
        capped = [n for n in free if each / sizes[n] > ends[n][1]]
        for n in capped or free:
            found[n] = min(max(each / sizes[n], ends[n][0]), ends[n][1])
            left /= found[n]
        free = [n for n in free if n not in capped] if capped else []
    return found
