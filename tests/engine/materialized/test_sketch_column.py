"""Kept sketches as a table of sketches in bytes."""

import numpy as np
import pytest
from support.kept_kinds import FORMS, of_kind

from skimql import UnsupportedQuery
from skimql.engine.materialized.sketch_column import sketch_table
from skimql.sketches.stored_form import from_bytes, meaning_of


@pytest.mark.parametrize("groups", [0, 3])
@pytest.mark.parametrize("form", ["hash", "hash map"])
def test_every_group_and_weight_has_a_row_with_the_bytes_of_its_sketch(form, groups):
    method, sizes = FORMS[form]
    kept = of_kind("s", method, groups=groups, **sizes)
    table = sketch_table(kept)
    assert table.column_names == [*(["g", "h"] if groups else []), "weight", "sketch"]
    assert table["weight"].to_pylist() == [None, "`v`"] * max(groups, 1)
    built = [b for of_group in kept.groups for b in of_group[:2]]
    for data, own in zip(table["sketch"].to_pylist(), built, strict=True):
        found = from_bytes(data)
        assert all(np.array_equal(found.state()[n], a) for n, a in own.sketch.state().items())
        assert meaning_of(data) is not None


@pytest.mark.parametrize("form", ["key sample", "level", "skimmed"])
def test_what_are_no_counters_of_join_keys_is_refused(form):
    method, sizes = FORMS[form]
    with pytest.raises(UnsupportedQuery) as refused:
        sketch_table(of_kind("s", method, **sizes))
    assert refused.value.code == "SKIMQL_NO_SKETCH"
