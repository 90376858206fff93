"""The parts into which the keys of a join are split."""

from skimql.optimizer.domain_partition import DomainPartition


def test_ranges_go_to_their_parts_and_the_outer_ones_take_the_rest():
    domain = DomainPartition((0, 10, 20), (0, 1, 0))
    assert domain.count == 2
    assert domain.part_of([-5, 0, 9, 10, 19, 20, 1 << 62]).tolist() == [0, 0, 0, 1, 1, 0, 0]
