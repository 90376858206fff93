"""From a uniform sample of distinct keys to how many keys have a property.

The single keys of a level sketch are such a sample, whatever the keys' frequencies; those with the property
are its *witnesses*. Their share times the number of distinct keys is the estimate.
"""

from __future__ import annotations

import math

from ..intervals.interval import Estimate, exact, uncertified
from .occupancy import Occupancy

TOO_MANY = "more keys than the sketch can count: it needs more levels"


def estimate_keys(occupancy: Occupancy, confidence: float) -> Estimate:
    """How many distinct keys there are.

    Exact if every key was seen by itself; not certified, and without an upper end, if all cells are full.
    """
    low, high = occupancy.interval(confidence)
    if occupancy.exact:
        return exact(occupancy.certain)
    if occupancy.saturated:
        return uncertified(Estimate(low, low, high, confidence, True, "measured"), TOO_MANY)
    return Estimate(occupancy.maximum_likelihood(), low, high, confidence, True, "measured")


def share_interval(hits: int, sample: int, confidence: float) -> tuple[float, float]:
    """Exact two-sided interval of a proportion, `hits` of `sample` draws.

    References
    ----------
    .. [1] C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of
       the binomial", Biometrika 26 (1934).
    """
    from scipy.special import betaincinv  # slow to import, and seldom needed

    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, sample - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, sample - hits, 1 - tail)) if hits < sample else 1.0
    return low, high


def estimate_share(occupancy: Occupancy, hits: int, sample: int, confidence: float) -> Estimate:
    """How many distinct keys have a property that `hits` of the `sample` single keys have.

    Parameters
    ----------
    occupancy : Occupancy
        Of the sketch the sample comes from.
    hits, sample : int
        Keys seen by themselves: with the property, and all.
    confidence : float
        In (0, 1).

    Returns
    -------
    Estimate
        Exact if every key was seen by itself. Otherwise the share's and the count's own intervals, whose
        errors are independent given the model, added in quadrature, and never below `hits`.

    Notes
    -----
    The sample is drawn without replacement from the keys themselves: the share's error shrinks by
    sqrt(1 - sample / keys), or of each copy's part of the sample.
    """
    low, high = occupancy.interval(confidence)
    # Independent copies see a key once each: what they see for certain is their mean.
    certain, seen = math.ceil(hits / occupancy.throws), sample / occupancy.throws
    if occupancy.exact:
        return exact(certain)
    if sample == 0 or occupancy.saturated:
        unknown = Estimate(float(certain), float(certain), high, confidence, True, "measured")
        return uncertified(unknown, TOO_MANY)
    keys = occupancy.maximum_likelihood()
    share = hits / sample
    share_low, share_high = share_interval(hits, sample, confidence)
    unseen = math.sqrt(max(1.0 - seen / keys, 0.0))
    below = math.hypot(keys * (share - share_low) * unseen, share * (keys - low))
    above = math.hypot(keys * (share_high - share) * unseen, share_high * (high - keys))
    value = max(share * keys, float(certain))
    low = max(math.floor(value - below), certain)
    high = min(math.ceil(value + above), hits / occupancy.throws + max(high - seen, 0.0))
    return Estimate(value, float(low), float(max(high, math.ceil(value))), confidence, True, "measured")
