"""Streams that are closed, full, or lack our signs."""

import errno
import io
import sys

import pytest

from skimql import EnvironmentFault
from skimql.cli.streams import NOT_WRITTEN, encodes, is_unicode, writing

ASCII = io.TextIOWrapper(io.BytesIO(), encoding="ascii")


def test_signs_that_an_encoding_lacks_are_replaced():
    assert encodes(ASCII, "5 ± 1 │").isascii()
    assert encodes(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), "5 ± 1") == "5 ± 1"
    assert not is_unicode(ASCII)


def test_a_full_disk_has_a_name_and_a_broken_pipe_stays_one():
    with pytest.raises(EnvironmentFault) as fault, writing(sys.stdout):
        raise OSError(errno.ENOSPC, "full")
    assert fault.value.code == NOT_WRITTEN
    with pytest.raises(BrokenPipeError), writing(sys.stdout):
        raise BrokenPipeError
