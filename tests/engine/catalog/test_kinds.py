"""Every kind of synopsis in a file: read as written, checked before it is believed, and as it was in committed files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.kept import same
from support.kept_kinds import FORMS, all_kinds, of_kind
from support.sketch_files import with_metadata

from skimql import BudgetExceeded, CorruptSketch
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.file import StoredSketch, canonical, decode, encode
from skimql.engine.catalog.form import Groups
from skimql.engine.catalog.kinds.registry import KINDS
from skimql.engine.catalog.metadata import from_json, to_json, version_of
from skimql.engine.catalog.texts import as_text, from_text, has_texts
from skimql.optimizer.methods import STORED

ALL = {s.head.name: s for s in all_kinds()}
GOLDEN = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize("sketch", ALL.values(), ids=ALL)
def test_what_is_written_is_read_of_every_kind(sketch):
    assert same(decode(encode(sketch), "file"), sketch)
    assert sketch.head.exact == (
        sketch.head.name.split(" by ")[0].endswith((" map", "all keys", "all entries"))
    )


@pytest.mark.parametrize("form", ["agms", "key sample", "two levels", "sampled table", "pairs"])
def test_the_smallest_of_a_kind_is_read_as_well(form):
    method, sizes = FORMS[form]
    sketch = of_kind("s", method, **{**sizes, "buckets": 1})
    assert same(decode(encode(sketch), "file"), sketch)


def test_there_is_a_form_of_every_kind():
    assert {method for method, _ in FORMS.values()} == set(KINDS) == set(STORED)


@pytest.mark.parametrize("version", [2, 3])
def test_a_catalog_of_an_older_version_has_what_it_had(version):
    """Committed files of every kind, with and without groups: the same arrays, bit for bit.

    What is held packed takes fewer bytes now than they say, and of a sampled table as many entries as its bytes hold.
    """
    catalog = Catalog(GOLDEN / f"catalog_v{version}")
    own = {name: sketch for name, sketch in ALL.items() if version_of(sketch.head) == version}
    assert {h.name for h in catalog.heads()} == set(own)
    for name, sketch in own.items():
        known = catalog.load(name)
        if not sketch.head.kind.packed(sketch.head.size(sketch.head.measures[0])):
            assert same(known, replace(sketch, head=replace(sketch.head, program=known.head.program))), name
        elif sketch.head.method == "hash" or sketch.head.exact:
            arrays = [
                [[sketch.head.kind.arrays(b.sketch) for b in g] for g in s.groups] for s in (known, sketch)
            ]
            assert str(arrays[0]) == str(arrays[1]), name
        else:
            assert known.head.nbytes > sketch.head.nbytes
            for (old, *_), (new, *_) in zip(known.groups, sketch.groups, strict=True):
                assert _entries(new.sketch) < _entries(old.sketch)


def _entries(sample):
    return {tuple(e) for e in np.concatenate([sample.keys, sample.weights]).T.tolist()}


@pytest.mark.parametrize("name", [n for n in FORMS if n != "total"])
def test_parts_of_the_data_add_up_to_all_of_it(name):
    """Merging the groups gives, array by array, what all tuples give: what APPEND relies on."""
    method, sizes = FORMS[name]
    first, *others = [g[0].sketch.copy() for g in of_kind("s", method, groups=3, **sizes).groups]
    for other in others:
        first.merge(other)
    kind, whole = KINDS[method], of_kind("s", method, **sizes).built[0].sketch
    found, wanted = kind.arrays(first), kind.arrays(whole)
    assert set(found) == set(wanted)
    assert all(np.array_equal(found[n], wanted[n]) for n in wanted)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("key sample", {"buckets": 3}),
        ("key sample", {"measures": []}),
        ("key sample", {"method": "two_level"}),
        ("key sample", {"parameters": {"dense": 1}}),
        ("two levels", {"parameters": {"dense": 3}}),
        ("two levels", {"parameters": {"dense": -1}}),
        ("sampled table", {"buckets": 0}),
        ("sampled table", {"parameters": {"dense": 3, "sampled": 0}}),
        ("sampled table", {"parameters": {"dense": 0, "sampled": 0}}),
        ("sampled table", {"parameters": {"dense": 2, "sampled": 2}}),
        ("sampled table", {"method": "key_sample"}),
        ("all entries", {"buckets": 5}),
        ("hash", {"parameters": {"dense": 2}}),
        ("hash", {"parameters": {"dense": 0}}),
        ("dense hash", {"parameters": {}}),
        ("dense hash", {"parameters": {"dense": 3}}),
        ("dense hash", {"buckets": 32}),
        ("dense hash map", {"parameters": {"dense": 1}}),
        ("skimmed", {"parameters": {"domain_bits": 21, "level_rows": 3, "level_buckets": 8}}),
        ("skimmed", {"parameters": {"domain_bits": 65, "level_rows": 3, "level_buckets": 8}}),
        ("level", {"rows": 5}),
        ("level", {"rows": 99}),
        ("level", {"buckets": 17}),
        ("pairs", {"buckets": 9}),
        ("pairs", {"method": "distinct"}),
        ("agms", {"rows": 4}),
        ("agms", {"method": "nosuch"}),
        ("hash by group", {"group_by": None}),
        ("hash by group", {"group_by": {"expressions": ["`g`"], "types": ["string"]}}),
        ("hash by group", {"group_by": {"expressions": ["`g`", "`h`"], "types": ["string", "map<int,int>"]}}),
        ("hash by group", {"group_by": {"expressions": ["`g`", "`h`"], "types": ["bigint", "bigint"]}}),
    ],
)
def test_metadata_that_do_not_fit_the_arrays_are_refused(name, changes):
    with pytest.raises(CorruptSketch, match="the file"):
        decode(with_metadata(encode(ALL[name]), **changes), "the file")


@pytest.mark.parametrize("name", ["key sample", "two levels"])
def test_a_sample_whose_keys_its_threshold_does_not_let_in_is_refused(name):
    sketch = ALL[name]
    arrays = sketch.head.kind.arrays(sketch.built[0].sketch)
    size = sketch.head.size(sketch.head.measures[0])
    prefix = "rest." if name == "two levels" else ""
    for array, value in (("last_hash", 5), ("last_hash", -1), ("unseen", -1), ("keys", 7)):
        broken = {**arrays, prefix + array: np.full_like(arrays[prefix + array], value)}
        with pytest.raises(ValueError, match=r"sample|threshold|bounds"):
            sketch.head.kind.restored(size, broken)


def test_a_file_of_many_groups_is_refused_before_it_is_read_if_it_takes_too_much():
    data = encode(of_kind("s", "hash", groups=50, limit_bytes=0))
    most = 50 * 3 * 8 * 3 * 64
    assert len(decode(data, "file", most).groups) == 50
    with pytest.raises(BudgetExceeded) as caught:
        decode(data, "file", most - 1)
    assert caught.value.code == "SKIMQL_MAX_BYTES"


def test_groups_may_be_none_and_heads_survive_as_json():
    none = replace(ALL["hash map"].head, groups=Groups(("`g`",), ("date",), (), ()))
    sketch = decode(encode(StoredSketch(none, ())), "file")
    assert (sketch.built, sketch.head.tuples, sketch.head.nbytes) == ((), 0, 0)
    for name, one in ALL.items():
        assert from_json(json.loads(canonical(to_json(one.head))), name) == one.head


def test_values_of_groups_are_texts_and_come_back():
    import datetime as dt
    from decimal import Decimal

    when = dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)
    values = {
        "string": ["", "null", "a\u0000b"], "boolean": [True, False], "bigint": [-(2**63)], "double": [0.1, float("inf")],
        "date": [dt.date(1, 1, 1)], "decimal(10,2)": [Decimal("-1.50")], "binary": [b"\x00\xff"],
        "timestamp": [when], "timestamp_ntz": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)],
    }  # fmt: skip
    for kind, some in values.items():
        assert has_texts(kind)
        for value in [*some, None]:
            assert from_text(as_text(value, kind), kind, "Europe/Berlin") == value
    assert from_text(as_text(when, "timestamp"), "timestamp", "Europe/Berlin").hour == 3
    assert from_text(as_text(when, "timestamp"), "timestamp", "No/where") == when
    for text, kind in (
        ("x", "bigint"),
        (str(2**62), "timestamp"),
        (str(2**62), "timestamp_ntz"),
        ("1e9", "decimal(10,2)"),
        ("yes", "boolean"),
        ("1", "array<int>"),
    ):
        with pytest.raises(ValueError, match=r".*"):
            from_text(text, kind, "UTC")
    assert not has_texts("array<int>")
