"""What a session assumes where a query is silent: one frozen value, set by `SET skimql.<name>` and by flags."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

from ..errors import SkimqlError
from ..optimizer.objective import MAX_EXACT_SECONDS
from ..optimizer.route import ROUTES
from ..parser.amounts import MOST_BYTES, BadNumber, byte_count, meant_percent, share, whole

BEHAVIORS = ("do_nothing", "local_omit", "strict", "run_on_full_table", "partial_run_on_base_table")
MOST_BUCKETS = 1 << 26
MOST_ROWS = 1001
LEAST_BYTES = 1 << 10
MOST_GROUPS = 100_000
MOST_SECONDS = 1_000_000_000


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
        Relative error that is aimed at where a query asks for none itself; None builds sketches of the session's size.
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
    max_exact_seconds : int
        Most CPU seconds that an exact run may be predicted to take, where it is what meets an asked error.
    max_bytes : int
        Most bytes of state that a query may take, on the driver and in each task.
    cache : bool
        Whether the sketches that a query builds are kept in the catalog, so that the next one finds them.
    simultaneous : bool
        Whether the confidence is that of all groups of an answer at once, and not of each.
    """

    seed: int = 1
    rows: int | None = None
    buckets: int = 4096
    size_bytes: int | None = None
    sparse: bool = True
    confidence: float = 0.95
    error: float | None = 0.05
    behavior: str = "do_nothing"
    bounds: bool = True
    max_groups: int = 100
    route: str = "auto"
    fold_bytes: int = 8 << 20
    max_bytes: int = 256 << 20
    max_exact_seconds: int = MAX_EXACT_SECONDS
    cache: bool = False
    simultaneous: bool = False

    def __post_init__(self) -> None:
        """Refuse values out of range, wherever they come from."""
        self._whole("seed", 0, (1 << 63) - 1)
        if self.rows is not None:
            self._whole("rows", 1, MOST_ROWS)
        self._whole("buckets", 2, MOST_BUCKETS)
        if self.size_bytes is not None:
            self._whole("size_bytes", 1, MOST_BYTES)
        self._share("confidence")
        if self.error is not None:
            self._share("error")
        self._whole("max_groups", 1, MOST_GROUPS)
        self._whole("fold_bytes", 0, MOST_BYTES)
        self._whole("max_bytes", LEAST_BYTES, MOST_BYTES)
        self._whole("max_exact_seconds", 1, MOST_SECONDS)
        _one_of("route", self.route, ROUTES)
        _one_of("behavior", self.behavior, BEHAVIORS)
        for name in SWITCHES:
            value = getattr(self, name)
            _require(isinstance(value, bool), name, value)

    def _whole(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        plain = isinstance(value, Integral) and not isinstance(value, bool)
        _require(plain and least <= value <= most, name, value)

    def _share(self, name: str) -> None:
        value = getattr(self, name)
        _require(isinstance(value, (int, float)) and 0 < value < 1, name, value)

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
                    f"there is no setting {_shown(name)}",
                    hint=f"{near[0]}" if near else "one of " + ", ".join(known),
                )
            changes[name] = _read(name, text)
        return replace(self, **changes)


def _read(name: str, text: str) -> Any:
    stripped = text.strip()
    try:
        if name == "seed":
            return whole(stripped)
        if name in ("rows", "buckets", "max_groups", "max_exact_seconds"):
            return whole(stripped, 1)
        if name == "size_bytes":
            return byte_count(stripped)
        if name in ("fold_bytes", "max_bytes"):
            return byte_count(stripped, 0)
        if name in ("confidence", "error"):
            if name == "error" and stripped.lower() in ("", "none"):
                return None
            return share(stripped)
    except BadNumber as fault:
        meant = meant_percent(stripped) if name in ("confidence", "error") else ""
        hint = f"{name} = {meant}" if meant else f"{name} takes {_WANTED[name]}"
        raise BadSetting(f"{name} = {_shown(stripped)} {fault}", hint=hint) from fault
    if name in SWITCHES:
        _require(stripped.lower() in ("all", "none", "true", "false"), name, text)
        return stripped.lower() in ("all", "true")
    return stripped.lower()


SWITCHES = ("bounds", "sparse", "cache", "simultaneous")
_WANTED = {
    "seed": "an integer in [0, 2^63)",
    "rows": f"an integer from 1 to {MOST_ROWS:,}",
    "buckets": f"2 to {MOST_BUCKETS:,}",
    "size_bytes": "a size, such as 64 KB",
    "confidence": "a share between 0 and 1, such as 95% or 0.95",
    "error": "a share between 0 and 1, such as 5% or 0.05, or none",
    "max_groups": f"1 to {MOST_GROUPS:,}",
    "fold_bytes": "0 or more bytes, such as 8 MB",
    "max_bytes": f"{LEAST_BYTES:,} bytes or more, such as 256 MB",
    "max_exact_seconds": f"1 to {MOST_SECONDS:,}, such as 3600 for an hour",
    **dict.fromkeys(SWITCHES, "true or false"),
}
_MOST_SHOWN = 40


def _require(holds: bool, name: str, value: object) -> None:
    if not holds:
        raise BadSetting(
            f"{name} = {_shown(str(value))} is out of range", hint=f"{name} takes {_WANTED[name]}"
        )


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        near = difflib.get_close_matches(str(value), known, 1)
        rest = ", ".join(k for k in known if k not in near)
        hint = f"{near[0]}, or another of {rest}" if near else f"one of {rest}"
        raise BadSetting(f"there is no {name} {_shown(str(value))}", hint=hint)


def _shown(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."
