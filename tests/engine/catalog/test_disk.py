"""Files made whole or not at all."""

import os

import pytest

from skimql.engine.catalog import disk


def test_a_file_is_never_made_in_the_place_of_another(tmp_path):
    path = tmp_path / "a"
    disk.create(path, b"one")
    with pytest.raises(FileExistsError):
        disk.create(path, b"two")
    assert disk.read(path) == b"one"
    assert os.listdir(tmp_path) == ["a"]


def test_a_replaced_file_keeps_its_mode(tmp_path):
    path = tmp_path / "a"
    disk.create(path, b"one", disk.PRIVATE)
    disk.replace(path, b"two", tmp_path / "b")
    assert (disk.read(path), path.stat().st_mode & 0o777) == (b"two", 0o600)
    assert os.listdir(tmp_path) == ["a"]


def test_only_regular_files_of_a_bearable_size_are_read(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    with pytest.raises(OSError):
        disk.read(tmp_path / "a", 4)
    with pytest.raises(OSError):
        disk.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError):
        disk.read(tmp_path / "pipe")
