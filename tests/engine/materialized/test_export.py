"""Files of EXPORT and IMPORT."""

import pytest

from skimql import DataError
from skimql.engine.materialized.export import read_file, write_new

HERE = ("EXPORT SKETCH s TO 'x'", (17, 20))


def test_a_file_is_written_once_and_read_within_its_bound(tmp_path):
    path = str(tmp_path / "s.parquet")
    write_new(path, b"12345", *HERE)
    assert read_file(path, 5, *HERE) == b"12345"
    with pytest.raises(DataError) as fault:
        write_new(path, b"other", *HERE)
    assert (fault.value.code, fault.value.span) == ("SKIMQL_FILE_EXISTS", (17, 20))
    for wrong, most in ((path, 4), (str(tmp_path), 9), (str(tmp_path / "none"), 9)):
        with pytest.raises(DataError):
            read_file(wrong, most, *HERE)
