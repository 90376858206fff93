"""The history of the shell."""

from __future__ import annotations

import threading

import pytest

from skimql.cli.shell.history import StatementHistory, is_secret


def test_an_entry_is_a_statement_with_its_lines(tmp_path):
    path = tmp_path / "state" / "history.jsonl"
    first = StatementHistory(path)
    for text in ("SELECT 1", "SELECT 'a\n  b;'\nFROM t", "größe ✓"):
        first.store_string(text)
    assert list(StatementHistory(path).load_history_strings()) == [
        "größe ✓",
        "SELECT 'a\n  b;'\nFROM t",
        "SELECT 1",
    ]
    assert path.stat().st_mode & 0o077 == 0


def test_two_shells_lose_nothing(tmp_path):
    path = tmp_path / "history.jsonl"

    def write(name):
        history = StatementHistory(path)
        for number in range(200):
            history.store_string(f"SELECT '{name}', {number}\nFROM t")

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(StatementHistory(path).load_history_strings())) == 400


def test_a_damaged_line_harms_no_other(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'"SELECT 1"\n"SELE\xff\n[1]\n"SELECT 2"\n')
    assert list(StatementHistory(path).load_history_strings()) == ["SELECT 2", "SELECT 1"]


@pytest.mark.parametrize(
    "text",
    ["CREATE TABLE t OPTIONS (password 'x')", "SET fs.s3a.secret.key = x", " SELECT 1", "... accessKey ..."],
)
def test_secrets_are_not_kept(tmp_path, text):
    assert is_secret(text)
    StatementHistory(tmp_path / "h").store_string(text)
    assert not (tmp_path / "h").exists()


def test_a_folder_that_takes_nothing_is_no_fault(tmp_path):
    (tmp_path / "file").touch()
    StatementHistory(tmp_path / "file" / "h").store_string("SELECT 1")
