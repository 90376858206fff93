"""What the workers of a kept sketch do: any kind, groups, deletions; the same bits however the tuples are split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from support.kept_kinds import FORMS, KEYS, PARTNERS, VALUES, of_kind

from skimql import DataError
from skimql.engine.catalog.kinds.registry import KINDS
from skimql.engine.materialized.building import Work, added, aligned, merged, merging, task
from skimql.engine.synopses import Tally

GROUPS = np.arange(60) % 3


def work_of(name):
    method, sizes = FORMS[name]
    head = of_kind("s", method, **sizes).head
    weights = ("times", "value", "presence")[: len(head.measures)]
    limit = None if head.limit_bytes else 0
    form = tuple(replace(head.size(m), limit_bytes=limit) for m in head.measures[: head.synopses])
    keys = ("key0", "key1")[: len(head.attributes)]
    return Work(method, form, keys, weights, True, np.array([1, 3])[: dict(head.parameters).get("dense", 0)])


def batch(tuples, times):
    """Some tuples, each counted so often; a last one without a key, another without a group."""
    chosen = np.array(tuples, np.int64)
    times = np.broadcast_to(np.int64(times), len(chosen))
    columns = {
        "key0": [*KEYS[chosen].tolist(), None, 1],
        "key1": [*PARTNERS[chosen].tolist(), 1, 1],
        "times": [*times.tolist(), 1, 1],
        "value": [*(VALUES[chosen] * times).tolist(), 1, 1],
        "presence": [*times.tolist(), 1, 1],
        "group": [*GROUPS[chosen].tolist(), 0, None],
    }
    return pa.RecordBatch.from_pydict({n: pa.array(v, pa.int64()) for n, v in columns.items()})


def arrays_of(work, batches):
    kind = KINDS[work.method]
    rows = [row for b in batches for row in b.to_pylist()]
    return {
        g: ([kind.arrays(s) for s in parts], tallies) for g, (parts, tallies) in added(work, rows).items()
    }


def same(one, other):
    return set(one) == set(other) and all(
        set(a) == set(b) and all(np.array_equal(a[n], b[n]) for n in a)
        for group in one
        for a, b in zip(one[group][0], other[group][0], strict=True)
    )


@pytest.mark.parametrize("name", [n for n in FORMS if n != "total"])
def test_parts_add_up_and_deletions_leave_the_same_arrays(name):
    work = work_of(name)
    run = task(work)
    whole = arrays_of(work, run(iter([batch(range(60), 1)])))
    pieces = [b for n in range(4) for b in run(iter([batch(range(n, 60, 4), 1)]))]
    assert same(arrays_of(work, pieces), whole)
    assert same(arrays_of(work, merging(work)(iter(pieces))), whole)
    twice = run(iter([batch(range(60), 1), batch(range(20), 1), batch(range(20), -1)]))
    deleted = arrays_of(work, twice)
    if name not in (
        "key sample",
        "two levels",
    ):  # the threshold of a sample may fall, and does not rise again
        assert same(deleted, whole)
    tally = whole[0][1][0]
    assert (tally.tuples, tally.negative, deleted[0][1][0].tuples) == (20, 0, 20)
    assert deleted[0][1][0].negative == len([n for n in range(20) if n % 3 == 0])


def test_more_tuples_than_64_bits_count_are_refused():
    work = work_of("hash map")
    with pytest.raises(OverflowError, match="number of tuples"):
        list(task(work)(iter([batch([0, 3, 6], 2**62)])))
    tuples = arrays_of(work, task(work)(iter([batch([0, 3, 6], 2**61)])))[0][1][0].tuples
    assert tuples == 3 * 2**61
    one = of_kind("s", "hash")
    many = replace(one.built[0], tally=Tally(2**63 - 1, 1.0, 0))
    with pytest.raises(DataError, match="leaves 64 bits"):
        merged([many], [one.built[0]], one.head, "")


def test_groups_that_only_one_side_has_are_merged_with_nothing():
    one, other = of_kind("s", "key_sample", groups=2), of_kind("s", "key_sample", groups=3)
    values = other.head.groups.values
    mine = aligned(one.head.groups, one.built, values, one.head)
    assert [b.tally for b in mine[6:]] == [Tally()] * 3
    both = merged(mine, other.built, one.head, "")
    assert [b.tally.tuples for b in both] == [30 + 20, 50, 50, 30 + 20, 50, 50, 20, 20, 20]
    assert both[0].sketch is both[1].sketch is both[2].sketch
    assert both[0].sketch is not mine[0].sketch
