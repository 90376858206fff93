"""Predicted errors of distinct counts: against their formulas, and against sketches of many seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skimql.optimizer.prediction.distinct import MAP_RESERVE, DistinctError, level_error, sets_error
from skimql.optimizer.prediction.values import Values
from skimql.sketches.distinct.level import LevelSpec


def flat(distinct, tuples=1.0):
    return Values(np.array([float(tuples)]), np.array([float(distinct)]))


def test_a_level_sketch_of_many_values_has_the_error_of_its_size_and_of_few_none():
    spec = LevelSpec(buckets=256)
    many = level_error(1e7, spec, True, 0.95)
    assert many.error == pytest.approx(spec.relative_error, rel=0.02)
    assert many.width == pytest.approx(math.expm1(1.96 * many.error), rel=0.01)
    assert many.nbytes == 8 * spec.words
    fits = int(spec.words / 2 / MAP_RESERVE)
    assert level_error(fits, spec, True, 0.95) == DistinctError(fits, 0.0, 0.0, 16.0 * fits, entries=fits)
    assert many.entries == spec.words / 2, "it begins as a map"
    assert level_error(1e7, spec, False, 0.95).entries == 0.0
    assert 0.0 < level_error(fits, spec, False, 0.95).error < many.error
    assert level_error(fits, spec, False, 0.99).width > level_error(fits, spec, False, 0.95).width
    assert level_error(0.0, spec, False, 0.95).error == 0.0


def test_values_that_are_known_to_about_a_seventh_fit_a_map_for_sure_where_all_tuples_do():
    spec = LevelSpec(buckets=256)
    fits = spec.words // 2
    assert level_error(fits, spec, True, 0.95).width > 0.0
    assert level_error(fits, spec, True, 0.95, tuples=fits).width == 0.0
    assert level_error(fits, spec, True, 0.95, tuples=fits + 1).width > 0.0
    assert level_error(fits, spec, False, 0.95, tuples=fits).width > 0.0


def test_a_set_expression_is_as_uncertain_as_its_share_of_the_union_is_small():
    spec = LevelSpec(buckets=256)
    sides = [level_error(1e6, spec, True, 0.95)] * 2
    errors = [sets_error(share * 2e6, 2e6, sides, spec, 0.95).error for share in (0.9, 0.5, 0.1)]
    assert errors == sorted(errors)
    # `set_expression`: sqrt((1 - share) / (1.44 buckets share) + 0.23 / buckets).
    assert errors[1] == pytest.approx(math.sqrt(1 / (1.4427 * 256) + 0.229 / 256), rel=0.02)
    assert sets_error(1.0, 2e6, sides, spec, 0.95).error == math.inf
    known = [DistinctError(9.0, 0.0, 0.0, 144.0)] * 2
    assert sets_error(5.0, 9.0, known, spec, 0.95) == DistinctError(5.0, 0.0, 0.0, 288.0)
