"""What a stored sketch says of itself."""

import copy

import pytest
from support.kept import kept

from skimql import IncompatibleSketches, SkimqlError
from skimql.engine.catalog.metadata import from_json, to_json

HEAD = kept("s", "t", {"a": [1, 2], "b": [3, 4]}, summed=("v", [5, 6])).head


def test_a_head_is_read_back_from_its_json():
    assert from_json(to_json(HEAD), "here") == HEAD
    assert (HEAD.tuples, HEAD.exact, HEAD.empty, len(HEAD.weights)) == (2, True, False, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 0},
        {"method": "magic"},
        {"seed": -1},
        {"buckets": 1 << 40},
        {"name": 3},
        {"measures": []},
        {"attributes": {}},
    ],
)
def test_a_head_that_no_program_writes_is_refused(change):
    data = copy.deepcopy(to_json(HEAD)) | change
    with pytest.raises((ValueError, KeyError, SkimqlError)):
        from_json(data, "here")


def test_a_newer_version_is_refused_by_name():
    with pytest.raises(IncompatibleSketches):
        from_json(to_json(HEAD) | {"format_version": 99}, "here")
