"""The keys that a kept hash sketch counts exactly beside its counters: how many a statement asks for, and which.

They are the heaviest that statistics know: of Spark's, or of the pilot, one cheap job more over the table. They are
fixed before the sketch is built, so that sketches of the same ones add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedQuery
from ...parser.amounts import BadNumber, whole
from ...parser.syntax import CreateSketch
from ..catalog.form import Head
from ..settings import BadSetting, Settings
from .form_sizing import Form, FormSizing

if TYPE_CHECKING:
    from ...optimizer.prediction.relation import Attribute

# Of CREATE SKETCH alone.
OPTION, BEST = "dense_keys", "auto"
MOST_KEYS = 1 << 20

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class DenseKeys:
    """What OPTIONS (dense_keys = ...) of a CREATE SKETCH asks for."""

    sizing: FormSizing

    @property
    def _statement(self) -> CreateSketch:
        return self.sizing.statement

    def beside(self, form: Form, draft: Head, settings: Settings) -> Form:
        """The form with the dense keys that are asked for; as it is where nothing is asked.

        Raises
        ------
        BadSetting
            If it is no number of keys.
        UnsupportedQuery
            ``SKIMQL_CLAUSE`` for what is no hash sketch.
        BudgetExceeded
            If they leave no room for counters in the size that is asked for.
        """
        text = self._statement.options.get(OPTION)
        if text is None:
            return form
        asked = self._number(text)
        if form.method != "hash":
            raise UnsupportedQuery(
                f"dense keys are counted beside the counters of a hash sketch, and this one is by {form.method}",
                "SKIMQL_CLAUSE",
                self._statement.sql,
                hint=f"OPTIONS without {OPTION}, or USING hash and one key",
            )
        form = replace(form, parameters=(), dense=None)
        if asked == 0:
            return form
        known = self._known(draft)
        size, weights = self._size(settings), len(draft.measures)
        if asked is None:
            from ...optimizer.prediction.sample_sketch import sized_sketch

            own = sized_sketch(known, (size or 8 * form.rows * form.buckets * weights) / weights, form.rows)
            return _with(form, known, own.dense, own.buckets)
        beside = _with(form, known, asked, form.buckets)
        if size is None:
            return beside
        return replace(beside, buckets=self.sizing.within(beside, draft, size, form.rows, 2))

    def _number(self, text: str) -> int | None:
        if text.strip().lower() == BEST:
            return None
        try:
            found = whole(text.strip())
        except BadNumber as fault:
            raise self._bad(text, str(fault)) from fault
        if found > MOST_KEYS:
            raise self._bad(text, f"is more than {MOST_KEYS:,}")
        return found

    def _bad(self, text: str, why: str) -> BadSetting:
        hint = f"{OPTION} = 300, or {OPTION} = {BEST}"
        return BadSetting(f"{OPTION} = {text.strip()[:40]} {why}", sql=self._statement.sql, hint=hint)

    def _size(self, settings: Settings) -> int | None:
        asked = self._statement.size_bytes
        return asked if asked is not None else settings.size_bytes

    def _known(self, draft: Head) -> Attribute:
        from ...optimizer.prediction.relation import complete

        return complete(self.sizing.statistics(draft)[0], 1).attributes[0]


def settings_in(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are settings."""
    return {name: value for name, value in options.items() if name != OPTION}


def _with(form: Form, known: Attribute, count: int, buckets: int) -> Form:
    """The form with so many of the heaviest keys that are known."""
    from ...sketches.ranking import by_weight

    heavy = known.heavy
    order = by_weight(np.abs(heavy.weights.astype(np.float64)), count)
    keys: Ints = np.unique(heavy.keys[order])
    if not keys.size:
        return replace(form, notes=(*form.notes, "no key is known to be heavy: none is counted by itself"))
    notes = form.notes
    if keys.size < count:
        notes = (*notes, f"{keys.size:,} keys are known, and all of them counted by themselves")
    return replace(form, buckets=buckets, parameters=(("dense", int(keys.size)),), dense=keys, notes=notes)
