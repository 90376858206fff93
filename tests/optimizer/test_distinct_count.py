"""How a COUNT(DISTINCT) is read from its synopses."""

from skimql.optimizer.distinct_count import JoinedPairs, KeySets, PairsByKey, Part, parts_of, with_parts

A, B, C = (Part(i, i) for i in range(3))
COUNTS = [A, KeySets("except", KeySets("union", A, B), C), JoinedPairs(A, B, C, None), PairsByKey(A, B, True)]


def test_every_part_is_found_and_can_be_changed():
    numbers = [sorted({p.synopsis for p in parts_of(c)}) for c in COUNTS]
    assert numbers == [[0], [0, 1, 2], [0, 1, 2], [0, 1]]
    for count in COUNTS:
        moved = with_parts(count, lambda p: Part(p.vertex, p.synopsis + 10))
        assert [p.synopsis - 10 for p in parts_of(moved)] == [p.synopsis for p in parts_of(count)]
        assert type(moved) is type(count)
