"""Where a catalog lies: every kind of folder behaves alike."""

import pytest

from skimql import DataError
from skimql.engine.catalog.folder import MemoryFolder, local_path, open_folder


@pytest.fixture(params=["local", "uri", "memory"])
def folder(request, tmp_path):
    if request.param == "memory":
        return MemoryFolder()
    return open_folder(tmp_path / "c" if request.param == "local" else (tmp_path / "c").as_uri())


def test_files_are_written_replaced_listed_and_deleted(folder):
    with folder.lock():
        folder.write("a", b"one")
        folder.replace("a", b"two", "b")
    assert folder.read("a") == b"two"
    assert "a" in folder.names()
    assert folder.stamp("a") is not None
    folder.delete("a")
    folder.delete("a")
    assert "a" not in folder.names()
    with pytest.raises(FileNotFoundError):
        folder.read("a")


def test_a_file_larger_than_its_reader_takes_is_not_read(tmp_path):
    folder = open_folder(tmp_path)
    folder.write("a", b"12345")
    with pytest.raises(OSError):
        folder.read("a", 4)


def test_a_path_with_a_nul_or_of_a_user_who_is_not_there_is_refused():
    for text in ("a\0b", "~nobody-of-that-name/x"):
        with pytest.raises(DataError):
            local_path(text)
