"""The sketches by themselves: an easy start, text keys, bytes and back, and faults that say what to do."""

import ast
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import skimql.sketches as library
from skimql.sketches import (
    Edge,
    HashSketch,
    LevelSpec,
    PairSample,
    SparsePairSample,
    fingerprint,
    from_bytes,
    hash_spec,
    join_estimate,
    make_agms_sketch,
    make_convolution_sketch,
    make_exact_first,
    make_family,
    make_hash_sketch,
    make_key_sample,
    make_level_sketch,
    to_bytes,
)
from skimql.sketches.distinct import pair_sample
from skimql.sketches.joins import agms, convolution
from skimql.sketches.reference import fm, jd_sketch, linear_jd, two_level_hash
from skimql.sketches.samples import key_sample

ROOT = Path(__file__).resolve().parents[2]
ONE = [Edge(0, 1)]


def test_every_name_that_is_offered_is_there_and_importing_them_imports_nothing():
    for name in library.__all__:
        assert getattr(library, name) is not None
        assert not isinstance(getattr(library, name), type(library)), f"{name} is a module"
    with pytest.raises(AttributeError, match="nosuch"):
        _ = library.nosuch
    program = "import sys, skimql, skimql.sketches; print([m for m in ('numpy', 'scipy', 'pyspark') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"


def test_type_checkers_see_what_is_offered():
    tree = ast.parse((ROOT / "sketches" / "__init__.py").read_text())
    seen = {
        a.asname
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        for a in node.names
    }
    assert seen == set(library.__all__)


# Values that Spark 4.3 gives for xxhash64 of STRING, BINARY, BIGINT, INT and of several columns.
TEXTS = [
    "",
    "a",
    "abcd",
    "Spark",
    "größe",
    "12345678",
    "x" * 31,
    "y" * 32,
    "z" * 33,
    "q" * 100,
    "ü" * 77,
    "nul\0byte",
]


@pytest.mark.spark
def test_fingerprints_are_those_of_spark(spark):
    numbers = [0, 1, -1, 2**62, -(2**63), 77, 5, 4, 3, 2, 10**12, 9]
    rows = list(zip(TEXTS, [t.encode() for t in TEXTS], numbers, [n % 1000 for n in numbers], strict=True))
    frame = spark.createDataFrame(rows, "s STRING, b BINARY, l BIGINT, i INT").coalesce(1)
    hashed = frame.selectExpr(
        "xxhash64(s)", "xxhash64(b)", "xxhash64(l)", "xxhash64(i)", "xxhash64(s, l, b)"
    ).collect()
    texts, octets, longs, ints, several = (list(column) for column in zip(*hashed, strict=True))
    assert fingerprint(TEXTS).tolist() == texts
    assert fingerprint([t.encode() for t in TEXTS]).tolist() == octets == texts
    assert fingerprint(np.array(numbers)).tolist() == longs
    assert fingerprint(np.array([n % 1000 for n in numbers], np.int32)).tolist() == ints
    assert fingerprint(TEXTS, np.array(numbers), [t.encode() for t in TEXTS]).tolist() == several


@pytest.mark.parametrize(
    "column",
    [
        np.array(TEXTS[:-1]),
        np.array(TEXTS[:-1], object),
        np.array([t.encode() for t in TEXTS[:-1]]),
        np.array([t.encode() for t in TEXTS[:-1]], object),
        pa.array(TEXTS[:-1]),
        pa.chunked_array([TEXTS[:3], TEXTS[3:-1]]),
        pa.array(TEXTS[:-1], pa.large_string()),
        tuple(TEXTS[:-1]),
    ],
    ids=lambda c: f"{type(c).__name__} {getattr(c, 'dtype', getattr(c, 'type', ''))}",
)
def test_text_and_bytes_are_keys_in_every_form(column):
    expected = fingerprint(TEXTS[:-1])
    assert fingerprint(column).tolist() == expected.tolist()
    one, other = make_hash_sketch("t"), make_hash_sketch("t")
    one.update([column])
    other.update(expected)
    assert one.counters.tobytes() == other.counters.tobytes()


def test_processes_agree_on_text_whatever_their_salt():
    program = "from skimql.sketches import *; s = make_hash_sketch('u'); s.update(['a', 'b']); print(to_bytes(s).hex()[-64:])"
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for salt in ("1", "2")
    }
    assert len(told) == 1


def test_text_and_numbers_in_one_sketch_are_different_keys():
    one, other = (make_exact_first(hash_spec(make_family().derive("u"))) for _ in "ab")
    one.update([str(n) for n in range(1000)])
    one.update(np.arange(1000))
    other.update(np.arange(500, 2000))
    assert join_estimate([one, other], ONE).value == 500


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["a", None], "position 1: a NULL joins nothing"),
        (["a", b"a"], "all text or all bytes"),
        (["a", 1], "all text or all bytes"),
        (np.array([1, 2], object), "all text or all bytes"),
        ([1.5], "float64"),
        (np.array(["2024-01-01"], "M8[D]"), "datetime64"),
        (np.array([1], np.uint64), "uint64"),
        (np.zeros((2, 2), np.int64), "shape"),
    ],
)
def test_what_is_no_key_is_refused(column, said):
    with pytest.raises(ValueError, match=said):
        fingerprint(column)
    with pytest.raises(ValueError, match="uint64" if said == "uint64" else said.split(":")[-1].strip()):
        make_hash_sketch().update([column])


def test_what_is_no_composite_key_is_refused():
    for columns, said in (
        ((), "not of none"),
        ((["a"], ["a", "b"]), "1 and 2 values"),
        ((np.zeros((2, 2), np.int64),), r"one-dimensional array, not of shape \(2, 2\)"),
    ):
        with pytest.raises(ValueError, match=said):
            fingerprint(*columns)


def test_an_array_alone_is_the_keys_of_one_attribute():
    for keys in (np.arange(9), list(range(9)), tuple(range(9)), pa.array(range(9))):
        alone, listed = make_hash_sketch(), make_hash_sketch()
        alone.update(keys)
        listed.update([np.arange(9)])
        assert alone.counters.tobytes() == listed.counters.tobytes()
        assert alone.tuples == 9
    with pytest.raises(ValueError, match=r"update\(\[users, items\]\)"):
        make_convolution_sketch(["user", "item"]).update(np.arange(9))
    with pytest.raises(ValueError, match=r"update\(\[keys\]\)"):
        make_hash_sketch().update(5)


def test_a_repr_tells_kind_size_seed_tuples_and_bytes():
    sketch = make_hash_sketch("user", seed=7)
    sketch.update(np.arange(1234))
    told = (
        "ConvolutionSketch(11 x 4096 int64 over tabulation(seed=7, key='user'), 1,234 tuples, 360,448 bytes)"
    )
    assert repr(sketch) == told
    for made in everything():
        assert "seed=7" in repr(made), made
        assert "bytes" in repr(made)
        assert " object at " not in repr(made)


def test_faults_show_the_seed_that_was_given():
    one, other = (make_hash_sketch("user", seed=seed) for seed in (7, 8))
    with pytest.raises(ValueError, match=r"seed=7, key='user'.*seed=8, key='user'"):
        join_estimate([one, other], ONE)
    with pytest.raises(ValueError, match=r"seed=7, key='user'.*seed=8"):
        one.merge(other)
    assert make_family(seed=7).derive("user") == type(make_family())(make_family(seed=7).derive("user").seed)
    assert str(make_family(seed=7).derive("a").derive("b")) == "tabulation(seed=7, key='a/b')"


@pytest.mark.parametrize(
    "make",
    [
        LevelSpec,
        key_sample.KeySampleSpec,
        pair_sample.PairSampleSpec,
        fm.FMSpec,
        two_level_hash.TwoLevelHashSpec,
        linear_jd.LinearJDSpec,
        jd_sketch.JDSpec,
        hash_spec,
        lambda n: convolution.ConvolutionSpec((n,)),
        lambda n: agms.AgmsSpec((n,)),
    ],
)
@pytest.mark.parametrize("given", [1024, "tabulation", None])
def test_a_number_is_no_hash_family(make, given):
    with pytest.raises(TypeError, match="takes a hash family"):
        make(given) if make is not key_sample.KeySampleSpec else make(given, 5)
    with pytest.raises(TypeError, match="tuple"):
        convolution.ConvolutionSpec(make_family())


@pytest.mark.parametrize("edge", [(0, 0, 1, 0), (0, 2, 0, 0), (0, 1)])
def test_a_wrong_edge_says_what_an_edge_is(edge):
    sketches = [make_hash_sketch(), make_hash_sketch()]
    with pytest.raises(ValueError, match="attribute of the left, attribute of the right"):
        join_estimate(sketches, [edge])
    assert Edge(0, 1) == (0, 1, 0, 0)
    assert "right_attribute" in Edge.__doc__


def everything():
    """A sketch of every kind that has a form as bytes, small, each with something in it."""
    made = [
        make_hash_sketch("u", seed=7, rows=3, buckets=16),
        make_hash_sketch("u", seed=7, rows=3, buckets=16, dtype="float64"),
    ]
    made += [make_agms_sketch("u", seed=7, s1=4, s2=3), library.FMSketch(fm.FMSpec(make_family(seed=7), 4))]
    made += [make_level_sketch("u", seed=7, buckets=16), make_key_sample("u", seed=7, capacity=5)]
    made += [make_exact_first(hash_spec(make_family(seed=7).derive("u"), 3, 16)) for _ in "ab"]
    made += [library.LevelSketch(LevelSpec(make_family(seed=7), 16, 4))]
    for sketch in made:
        sketch.update(np.arange(9))
    made[-2].update(np.arange(9, 100))
    pairs = [
        kind(library.PairSampleSpec(make_family(seed=7), 2, 4, 4)) for kind in (PairSample, SparsePairSample)
    ]
    for sample in pairs:
        sample.update([1, 2, 3], [4, 5, 6])
    both = make_convolution_sketch(["u", "i"], seed=7, rows=3, buckets=16)
    both.update([np.arange(5), np.arange(5)])
    return [*made, *pairs, both]


def test_bytes_and_back_is_the_same_sketch():
    for sketch in everything():
        data = to_bytes(sketch)
        back = from_bytes(data)
        assert type(back) is type(sketch)
        assert back.spec == sketch.spec
        assert repr(back) == repr(sketch)
        assert to_bytes(back) == data
        assert all(np.array_equal(back.state()[name], array) for name, array in sketch.state().items())
        sketch.merge(back)
    with pytest.raises(TypeError, match="no form as bytes"):
        to_bytes("sketch")
    assert isinstance(from_bytes(to_bytes(make_hash_sketch())), HashSketch)


def resealed(data, change):
    """The bytes with another head, and the checksum that belongs to them."""
    start = 20
    size = int.from_bytes(data[16:start], "little")
    head = json.loads(data[start : start + size])
    change(head)
    text = json.dumps(head).encode()
    body = data[:16] + len(text).to_bytes(4, "little") + text + data[start + size : -32]
    return body + hashlib.sha256(body).digest()


CHANGES = [
    lambda h: h.update(kind="pickle"),
    lambda h: h.update(limit_bytes=-1),
    lambda h: h.update(limit_bytes="x"),
    lambda h: h.update(tuples=-5),
    lambda h: h.update(arrays=[]),
    lambda h: h["arrays"][0].__setitem__(1, "object"),
    lambda h: h["arrays"][0].__setitem__(2, [-3, -16]),
    lambda h: h["arrays"][0].__setitem__(2, [10**30]),
    lambda h: h["arrays"][0].__setitem__(2, [1.5]),
    lambda h: h["arrays"].append(h["arrays"][0]),
    lambda h: h["spec"].update(rows=10**9),
    lambda h: h["spec"].update(rows=True),
    lambda h: h["spec"].update(buckets=1 << 29),
    lambda h: h["spec"].update(extra=1),
    lambda h: h["spec"].pop("dtype"),
    lambda h: h["spec"].update(dtype="object"),
    lambda h: h["spec"].update(families=7),
    lambda h: h["spec"]["families"][0].update(name="os.system"),
    lambda h: h["spec"]["families"][0].update(seed=-1),
    lambda h: h["spec"]["families"][0].update(seed=10**40),
    lambda h: h["spec"]["families"][0].update(seed=1.5),
    lambda h: h["spec"]["families"][0].update(seed=True),
    lambda h: h["spec"]["families"][0].update(seed="7"),
    lambda h: h["spec"]["families"][0].update(parameters={"domain_bits": 3}),
    lambda h: h["spec"]["families"][0].update(origin=[1, [2]]),
    lambda h: h["spec"]["families"][0].update(origin="x"),
    lambda h: h.clear(),
]


@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_a_crafted_head_is_refused_before_memory_is_taken(change):
    with pytest.raises(ValueError):
        from_bytes(resealed(to_bytes(make_hash_sketch(rows=3, buckets=16)), CHANGES[change]))


@pytest.mark.parametrize(
    "array",
    [["object", [3, 16]], ["int64", [-3, -16]], ["int64", [1.5]], ["int64", [True, 48]], ["<U4", [3]]],
)
def test_what_is_no_array_is_refused_as_such(array):
    """By its own words, not by whatever numpy says of it."""

    def change(head):
        head["arrays"][0][1:] = array

    with pytest.raises(ValueError, match="is no array of a sketch"):
        from_bytes(resealed(to_bytes(make_hash_sketch(rows=3, buckets=16)), change))


def test_bytes_of_another_form_are_refused_though_their_checksum_holds():
    body = to_bytes(make_hash_sketch(rows=3, buckets=16))[:-32]
    for changed, said in (
        (b"X" + body[1:], "of another version"),
        (body[:16] + (1 << 30).to_bytes(4, "little") + body[20:], "is none of a sketch"),
        (body + b"more", "4 bytes belong to no array"),
    ):
        with pytest.raises(ValueError, match=said):
            from_bytes(changed + hashlib.sha256(changed).digest())


def test_damaged_bytes_are_refused():
    data = to_bytes(make_hash_sketch(rows=1, buckets=4))
    for n in range(len(data)):
        with pytest.raises(ValueError, match=r"damaged|no sketch"):
            from_bytes(data[:n])
        with pytest.raises(ValueError, match=r"damaged|no sketch"):
            from_bytes(data[:n] + bytes([data[n] ^ 4]) + data[n + 1 :])
    with pytest.raises(ValueError, match="larger than the 100 allowed"):
        from_bytes(to_bytes(make_hash_sketch()), most_bytes=100)
