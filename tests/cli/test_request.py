"""A command line, checked."""

from skimql.cli.request import Request


def test_it_is_a_value():
    one = Request((), "csv", (), None, False, False, {}, False, False, False)
    assert one == Request((), "csv", (), None, False, False, {}, False, False, False)
    assert (one.conf, one.timing, one.output_file, one.first) == ({}, False, None, ())
