"""Metadata of kept sketches as JSON, and what a foreign file may say."""

import copy
import json

import pytest
from support.kept import kept

from skimql import CorruptSketch, IncompatibleSketches
from skimql.engine.catalog.metadata import COMMON_VERSION, FORMAT_VERSION, from_json, to_json

HEAD = kept("s", "t", {"k": [1, 2], "l": [3, 4]}, summed=("v", [5, -6]), condition="`v` > 1").head
DATA = json.loads(json.dumps(to_json(HEAD)))


def changed(*path, to):
    data = copy.deepcopy(DATA)
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return data


def test_a_head_is_the_same_after_its_json():
    assert from_json(DATA, "here") == HEAD
    assert DATA["format_version"] == COMMON_VERSION


def test_a_newer_version_is_not_guessed_at():
    with pytest.raises(IncompatibleSketches):
        from_json(changed("format_version", to=FORMAT_VERSION + 1), "here")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("kind",), "another"),
        (("method",), "no such method"),
        (("rows",), -1),
        (("buckets",), 1 << 40),
        (("rows",), "11"),
        (("attributes", 0, "keys"), []),
        (("attributes", 0, "family", "name"), "pickle"),
        (("measures", 0, "dtype"), "object"),
        (("measures", 0, "scale"), 0.0),
        (("measures", 0, "scale"), 1e300),
        (("columns",), [["k"]]),
    ],
    ids=lambda v: str(v)[:40],
)
def test_what_is_no_sketch_is_corrupt_and_says_where_it_lies(path, value):
    with pytest.raises(CorruptSketch, match="here"):
        from_json(changed(*path, to=value), "here")


@pytest.mark.parametrize("data", [None, [], "text", 7])
def test_what_is_no_object_is_corrupt(data):
    with pytest.raises(CorruptSketch):
        from_json(data, "here")
