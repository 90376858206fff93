"""What a session assumes where a query is silent: one frozen value, set by `SET skimql.<name>` and by flags."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..errors import SkimqlError
from ..optimizer.route import ROUTES

BEHAVIORS = ("do_nothing", "local_omit", "strict", "run_on_full_table", "partial_run_on_base_table")
PLANNED_METHODS = ("key_sample", "two_level")
METHODS = ("hash", "convolution", "agms", "skimmed", *PLANNED_METHODS, "distinct", "join_distinct")
BYTE_UNITS = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
MOST_BUCKETS = 1 << 26
LEAST_BYTES = 1 << 10
MOST_GROUPS = 100_000


class BadSetting(SkimqlError):
    """A setting or option that does not exist, or a value it cannot take."""

    default_code = "SKIMQL_BAD_SETTING"


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults of a session.

    Attributes
    ----------
    seed : int
        Sketch seed: the same seed and data give the same counters, bit for bit.
    rows : int or None
        Rows of every sketch; None takes 11, or more where the asked confidence needs more.
    buckets : int
        Counters in a row, 8 bytes each.
    size_bytes : int or None
        Bytes of all sketches of a query together; goes over `buckets` (the clause SIZE).
    sparse : bool
        Whether a sketch starts as an exact map of keys while that takes no more bytes than its counters; small
        tables and keys of few values then come out exact.
    confidence : float
        Confidence of the intervals, in (0, 1).
    error : float or None
        Relative error asked of every query that asks for none itself.
    behavior : str
        What happens when the asked error is missed.
    bounds : bool
        Whether results carry the interval beside each value.
    max_groups : int
        Groups that a query with GROUP BY may have; each takes sketches of its own.
    route : str
        Where the sketches of a query are made: "arrow" (Python workers), "jvm" (Spark alone, or not at all), or
        "auto": the cheaper way, which is in the JVM for counts by one key.
    fold_bytes : int
        Largest exact message: a table with so few keys is joined into another as a weight; 0 for none.
    max_bytes : int
        Most bytes of state that a query may take, on the driver and in each task.
    cache : bool
        Whether the sketches that a query builds are kept in the catalog, so that the next one finds them.
    """

    seed: int = 1
    rows: int | None = None
    buckets: int = 4096
    size_bytes: int | None = None
    sparse: bool = True
    confidence: float = 0.95
    error: float | None = None
    behavior: str = "do_nothing"
    bounds: bool = True
    max_groups: int = 100
    route: str = "auto"
    fold_bytes: int = 8 << 20
    max_bytes: int = 256 << 20
    cache: bool = False

    def __post_init__(self) -> None:
        _require(0 <= self.seed < 1 << 63, "seed", self.seed, "an integer in [0, 2^63)")
        _require(self.rows is None or 1 <= self.rows <= 1001, "rows", self.rows, "an integer from 1 to 1001")
        _require(2 <= self.buckets <= MOST_BUCKETS, "buckets", self.buckets, f"2 to {MOST_BUCKETS:,}")
        _require(0 < self.confidence < 1, "confidence", self.confidence, "between 0 and 1, such as 0.95")
        _require(self.error is None or self.error > 0, "error", self.error, "above 0, such as 0.05")
        _require(1 <= self.max_groups <= MOST_GROUPS, "max_groups", self.max_groups, f"1 to {MOST_GROUPS:,}")
        _require(self.route in ROUTES, "route", self.route, "one of " + ", ".join(ROUTES))
        _require(self.fold_bytes >= 0, "fold_bytes", self.fold_bytes, "0 or more bytes")
        _require(self.max_bytes >= LEAST_BYTES, "max_bytes", self.max_bytes, f"{LEAST_BYTES:,} bytes or more")
        _require(self.behavior in BEHAVIORS, "behavior", self.behavior, "one of " + ", ".join(BEHAVIORS))

    @property
    def by_hand(self) -> bool:
        """Whether rows, buckets or their form were set: sketches of that size are wanted, whatever is predicted."""
        ours = Settings()
        return (self.rows, self.buckets, self.sparse) != (ours.rows, ours.buckets, ours.sparse)

    def with_text(self, values: Mapping[str, str]) -> Settings:
        """These settings with some replaced by values as they stand in SQL or on a command line.

        Raises
        ------
        BadSetting
            If a name is unknown (near names are listed) or a value cannot be read.
        """
        changes: dict[str, Any] = {}
        known = [f.name for f in fields(self)]
        for name, text in values.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                raise BadSetting(
                    f"there is no setting {name}",
                    hint=f"{near[0]}" if near else "one of " + ", ".join(known),
                )
            changes[name] = _read(name, text)
        return replace(self, **changes)


def _read(name: str, text: str) -> Any:
    stripped = text.strip()
    try:
        if name in ("seed", "rows", "buckets", "size_bytes", "max_groups"):
            return int(stripped.replace(",", "").replace("_", ""))
        if name in ("fold_bytes", "max_bytes"):
            return _bytes(stripped)
        if name in ("confidence", "error"):
            if name == "error" and stripped.lower() in ("", "none"):
                return None
            return float(stripped[:-1]) / 100 if stripped.endswith("%") else float(stripped)
    except ValueError as fault:
        raise BadSetting(f"{name} = {text} is not a number") from fault
    if name in ("bounds", "sparse", "cache"):
        _require(stripped.lower() in ("all", "none", "true", "false"), name, text, "true or false")
        return stripped.lower() in ("all", "true")
    return stripped.lower()


def _bytes(text: str) -> int:
    """A number of bytes, as ``8388608`` or ``8 MB``; ValueError if it is none."""
    digits = text.rstrip("bBkKmMgG ")
    unit = text[len(digits) :].strip().lower()
    if unit not in BYTE_UNITS:
        raise ValueError(text)
    return int(float(digits.replace(",", "").replace("_", "")) * BYTE_UNITS[unit])


def _require(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise BadSetting(f"{name} = {value} is out of range", hint=f"{name} takes {wanted}")
