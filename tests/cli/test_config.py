"""The configuration: what holds, why, and what is wrong in a file."""

from __future__ import annotations

import os

import pytest

from skimql import SkimqlError
from skimql.cli import config as module
from skimql.cli.config import described, load


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in [n for n in os.environ if n.startswith("SKIMQL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def write(home, text, name="config/skimql/config.toml"):
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_later_sources_win_and_every_value_tells_its_own(home, monkeypatch):
    path = write(
        home,
        'theme = "light"\nerror = "1%"\nconfidence = 0.9\ncatalog = "kept"\n[spark]\n"spark.driver.memory" = "4g"\n',
    )
    monkeypatch.setenv("SKIMQL_ERROR", "2%")
    config = load({"theme": "dark", "catalog": None})
    told = {name: (value, origin) for name, value, origin in described(config)}
    assert told["theme"] == ("dark", "the command line")
    assert told["error"] == ("2%", "SKIMQL_ERROR")
    assert told["confidence"] == ("0.9", f"{path}, line 3")
    assert told["catalog"] == (str(path.parent / "kept"), f"{path}, line 4")
    assert told["spark.spark.driver.memory"] == ("4g", f"{path}, line 6")
    assert told["seed"] == ("1", "built in")
    assert config.settings == {"error": "2%", "confidence": "0.9"}
    assert config.spark_conf == {"spark.driver.memory": "4g"}


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ('\n\nthem = "dark"\n', 3, "theme"),
        ('theme = "drak"\n', 1, "theme = dark"),
        ("pager = 7\n", 1, "pager = true"),
        ("seed = 1\nerror = 5\n", 2, "5%"),
        ("[tabels]\na = 'b'\n", 1, "[tables]"),
        ("[tables]\na = [1]\n", 2, "..."),
        ("theme = \n", 1, ""),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line_and_a_way_out(home, text, line, hint):
    path = write(home, text)
    with pytest.raises(SkimqlError) as fault:
        load()
    assert fault.value.code == "SKIMQL_BAD_SETTING"
    assert fault.value.line == line
    assert str(path) in fault.value.message
    assert hint in fault.value.hint


def test_a_project_is_read_when_it_is_trusted_as_it_is(home):
    path = write(home, '[tables]\nt = "data/t.parquet"\n[queries]\nq = "SELECT 1"\n', "work/.skimql.toml")
    assert load().tables == {}
    assert "not trusted" in load().notes[0]
    assert load(project=True).tables["t"].value == str(path.parent / "data/t.parquet")
    module.trust(path)
    assert load().queries["q"].value == "SELECT 1"
    path.write_text(path.read_text() + "# changed\n")
    assert load().tables == {}


def test_unknown_variables_are_noted_and_bad_ones_refused(home, monkeypatch):
    monkeypatch.setenv("SKIMQL_THEM", "dark")
    assert "SKIMQL_THEME" in load().notes[0]
    monkeypatch.setenv("SKIMQL_PAGER", "maybe")
    with pytest.raises(SkimqlError, match="SKIMQL_PAGER"):
        load()


def test_the_example_is_a_file_that_can_be_read_and_is_never_written_over(home):
    path = module.write_example()
    load()
    lines = [
        line.removeprefix("# ")
        for line in path.read_text().splitlines()
        if " = " in line and '"..."' not in line
    ]
    path.write_text(
        "\n".join(
            line for line in lines if "\\n" not in line and '" = ' not in line and "flights" not in line
        )
    )
    assert load()["theme"] == "auto"
    with pytest.raises(SkimqlError, match="is there already"):
        module.write_example()
