"""Tables by path alone: a file is a table of its name, a folder with a slash one for each file and folder in it."""

from __future__ import annotations

import pytest

from skimql.cli import app


@pytest.fixture
def seen(monkeypatch):
    requests = []
    monkeypatch.setattr("skimql.cli.run.run_texts", lambda request: requests.append(request) or 0)

    def tables(*arguments):
        requests.clear()
        app.app([*arguments], standalone_mode=False)
        return dict(requests[0].tables)

    return tables


@pytest.fixture
def data(tmp_path, monkeypatch):
    for name in ("orders.parquet", "2024-sales.csv.gz", "größe.json", "_SUCCESS", ".hidden.csv"):
        (tmp_path / name).touch()
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "part-0.parquet").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_alone_is_a_table_of_its_name(data, seen):
    assert seen("orders.parquet", "-c", "x") == {"orders": "orders.parquet"}
    assert seen("-t", "orders.parquet", "-c", "x") == {"orders": "orders.parquet"}
    assert seen("-c", "x", "orders.parquet", "größe.json") == {
        "orders": "orders.parquet",
        "größe": "größe.json",
    }
    assert seen("-t", "o=orders.parquet", "2024-sales.csv.gz", "-c", "x") == {
        "o": "orders.parquet",
        "t2024_sales": "2024-sales.csv.gz",
    }


def test_a_folder_with_a_slash_is_a_table_for_each_thing_in_it(data, seen):
    assert sorted(seen("-t", f"{data}/", "-c", "x")) == ["größe", "lines", "orders", "t2024_sales"]
    # A folder of part files is one table, with the slash and without.
    assert seen("-t", "lines/", "-c", "x") == {"lines": "lines"}
    assert seen("-t", "lines", "-c", "x") == {"lines": "lines"}


def test_what_is_no_file_is_wrong_usage(data, seen):
    for wrong in (["-t", "nosuch", "-c", "x"], ["nosuch.parquet", "-c", "x"], ["-t", "=x", "-c", "x"]):
        with pytest.raises(Exception) as fault:
            seen(*wrong)
        assert fault.value.exit_code == 2


@pytest.mark.spark
@pytest.mark.parametrize(
    "table",
    ["'{path}'", "parquet.`{path}`"],
)
def test_a_path_in_from_is_a_table(session, tmp_path, table):
    path = tmp_path / "a.parquet"
    session.spark.range(3).write.parquet(str(path))
    assert session.sql(f"SELECT APPROXIMATE COUNT(*) FROM {table.format(path=path)} a").value == 3
