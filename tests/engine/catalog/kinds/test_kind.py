"""What all kinds of kept synopses share: keys as arrays, and checks of what a file declares."""

from types import SimpleNamespace

import numpy as np
import pytest

from skimql.engine.catalog.kinds.kind import Size, check_arrays, check_map, joined_keys, split_keys, stored_in

KEYS = np.array([[1, 2**63 + 5], [3, 4]], np.uint64)
STATE = {"keys": KEYS, "weights": np.array([7, 8])}


def declared(dtype, *shape):
    return SimpleNamespace(dtype=dtype, shape=shape)


def test_keys_are_an_array_for_each_attribute_bit_by_bit():
    arrays = split_keys({"keys": KEYS.view(np.int64), "weights": STATE["weights"], "words": KEYS[:, 0]})
    assert arrays["keys.1"].view(np.uint64).tolist() == [2**63 + 5, 4]
    assert arrays["words"].dtype == np.int64
    back = joined_keys(arrays, 2)
    assert (back["keys"].view(np.uint64) == KEYS).all()
    assert joined_keys({"counters": KEYS}, 2).keys() == {"counters"}
    assert joined_keys({"weights": STATE["weights"]}, 0)["keys"].shape == (2, 0)


def test_bytes_are_eight_for_each_number():
    assert stored_in(STATE) == 8 * 6


def test_a_map_has_as_many_keys_as_weights():
    good = {"keys.0": declared("int64", 3), "weights": declared("float64", 3)}
    check_map(good, 1, "float64")
    for bad in (
        {**good, "keys.0": declared("int64", 4)},
        {**good, "weights": declared("int64", 3)},
        {**good, "more": declared("int64", 3)},
    ):
        with pytest.raises(ValueError, match="not"):
            check_map(bad, 1, "float64")


def test_arrays_are_those_that_are_wanted():
    check_arrays({}, {})
    with pytest.raises(ValueError, match=r"its arrays are \['a'\], not \['b'\]"):
        check_arrays({"a": declared("int64", 1)}, {"b": ("int64", (1,))})


def test_parameters_by_name():
    assert Size((), 1, 2, parameters=(("dense", 3),)).named == {"dense": 3}
