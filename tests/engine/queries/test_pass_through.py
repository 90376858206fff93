"""Which session runs a statement that is Spark's; sessions and tables are stand-ins."""

from types import SimpleNamespace

import pytest

from skimql.engine.queries import pass_through


class Tables:
    def __init__(self):
        self.ours = SimpleNamespace(sql=lambda text: f"ours: {text}")
        self.asked, self.forgotten = [], 0

    def named_in(self, text):
        self.asked.append(text)
        return ["t"] if "t1" in text else []

    def registered(self):
        return ["t1"]

    def place(self):
        return SimpleNamespace(spark=self.ours)

    def show(self, place, text):
        self.shown = text

    def forget_place(self):
        self.forgotten += 1


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(pass_through, "user_frame", lambda frame: frame)
    monkeypatch.setattr(pass_through, "forget_file_lists", lambda spark: None)
    user = SimpleNamespace(sql=lambda text: f"user: {text}")

    def run(text):
        tables = Tables()
        return pass_through.run_by_spark(tables, user, text), tables

    return run


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        ("SELECT 1", "user"),
        ("SELECT * FROM t1", "ours"),
        ("/* t1 */ SELECT 1", "user"),
        ("SET spark.x = t1", "user"),
        ("DROP TABLE t1", "user"),
        ("CREATE TABLE x AS SELECT * FROM t1", "ours"),
        ("CREATE TABLE t1 (k INT)", "user"),
        ("INSERT INTO x SELECT * FROM t1", "ours"),
        ("SHOW TABLES", "ours"),
    ],
)
def test_whose_session_runs_it(run, text, whose):
    assert run(text)[0] == f"{whose}: {text}"


def test_of_what_makes_a_table_only_the_select_names_tables(run):
    _, tables = run("CREATE OR REPLACE TEMPORARY VIEW t1 AS SELECT 2")
    assert tables.asked == [" SELECT 2"]


def test_after_a_write_the_next_statement_sees_it(run):
    assert run("SELECT * FROM t1")[1].forgotten == 0
    assert run("INSERT INTO x SELECT * FROM t1")[1].forgotten == 1
