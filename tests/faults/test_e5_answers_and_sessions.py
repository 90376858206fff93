"""What Python users expect of an answer and a session: pandas, iteration, plots, repr, with, given values, types."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import types
from decimal import Decimal
from pathlib import Path

import pytest

from skimql import Answer, EnvironmentFault, Estimate, Message, Session, SkimqlError, UnsupportedQuery
from skimql.engine.sources.literals import literal

ROOT = Path(__file__).parents[2]


def estimate(value):
    return Estimate(value, value - 2, value + 1, 0.95, True, "theorem")


GROUPED = Answer(("g", "n"), (("x", estimate(10.0)), ("y", estimate(20.0))))


def test_an_answer_is_iterated_and_has_a_length():
    assert len(GROUPED) == 2
    assert [r["g"] for r in GROUPED] == ["x", "y"]
    assert list(GROUPED.toPandas()["n"]) == [10.0, 20.0]


def test_plots_without_matplotlib_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(EnvironmentFault, match=r"skimql\[plot\]"):
        GROUPED.plot()


def test_plots_draw_values_and_intervals(monkeypatch):
    drawn = {}

    class Axes:
        def __getattr__(self, name):
            return lambda *a, **k: drawn.setdefault(name, (a, k))

    module = types.ModuleType("matplotlib.pyplot")
    module.subplots = lambda: (None, Axes())
    package = types.ModuleType("matplotlib")
    package.pyplot = module
    monkeypatch.setitem(sys.modules, "matplotlib", package)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", module)
    GROUPED.plot()
    assert drawn["bar"][0] == ([0, 1], [10.0, 20.0])
    assert drawn["errorbar"][1]["yerr"] == [[2.0, 2.0], [1.0, 1.0]]
    assert drawn["set_xticks"][0] == ([0, 1], ["x", "y"])
    with pytest.raises(UnsupportedQuery, match="no aggregate z"):
        GROUPED.plot("z")
    with pytest.raises(UnsupportedQuery):
        Answer(("a",), ((1,),), exact=True).plot()


def test_a_session_shows_itself_and_closes(tmp_path):
    with Session(catalog=tmp_path) as session:
        assert (
            repr(session)
            == f"<skimql.Session: Spark not started; catalog {tmp_path}; tables none registered>"
        )
        said = session.sql("SET skimql.confidence = 0.99")
        assert isinstance(said, Message)
        assert str(said) == "skimql.confidence = 0.99"
        assert said.records() == []
    session.close()
    assert "closed" in repr(session)
    with pytest.raises(EnvironmentFault, match="closed"):
        session.sql("SELECT 1")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-3, "-3"),
        (0.1, "0.1D"),
        (1e300, "1e+300D"),
        (Decimal("1.50"), "1.50BD"),
        ("it's \\ a", "'it\\'s \\\\ a'"),
        (datetime.date(2026, 1, 2), "DATE '2026-01-02'"),
        (datetime.datetime(2026, 1, 2, 3), "TIMESTAMP '2026-01-02 03:00:00'"),
    ],
)
def test_values_become_literals(value, text):
    assert literal("v", value) == text


@pytest.mark.parametrize("text", ["SELECT {x}", "SELECT {}", "SELECT {", "SELECT {v} }", "SELECT {0}"])
def test_values_that_do_not_fit_the_text(text):
    with pytest.raises(UnsupportedQuery) as fault:
        Session().sql(text, v=[1, 2])
    assert fault.value.code == "SKIMQL_BAD_VALUE"


def test_the_readme_type_checks_in_a_users_code(tmp_path):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    lines = [
        "from pyspark.sql import DataFrame",
        "planes_df: DataFrame",
        "df_a: DataFrame",
        "df_b: DataFrame",
        block,
    ]
    (tmp_path / "user.py").write_text(
        "\n".join(lines) + "\nanswer.to_pandas().shape, answer.arrow(), len(answer), answer.df\n"
    )
    # The types of `Session` and `Answer` are what users meet; reading all others takes longer than the rest.
    others = "pyspark.*,pandas.*,numpy.*,scipy.*,networkx.*,sqlglot.*,lark.*,pyarrow.*,py4j.*,skimql.optimizer.*,skimql.sketches.*,skimql.parser.*,skimql.engine.catalog.*,IPython.*,filelock.*,prompt_toolkit.*"
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\nfollow_imports = silent\n[mypy-{others}]\nfollow_imports = skip\nfollow_imports_for_stubs = true\nignore_missing_imports = true\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "user.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.spark
def test_given_frames_are_tables_as_long_as_the_statement_runs(session, spark):
    df = spark.sql("SELECT id AS k FROM range(5)")
    session.table("df", spark.range(1).withColumnRenamed("id", "k"))
    asked = "SELECT APPROXIMATE COUNT(*) FROM {df} JOIN {df} b ON {df}.k = b.k WHERE {df}.k < {most}"
    assert session.sql(asked, df=df, most=3).value == 3
    assert session.sql("SELECT COUNT(*) AS n, {t} AS t FROM {df}", df=df, t="it's {df}").first() == (
        5,
        "it's {df}",
    )
    assert session.sql("SELECT '{df}' AS text").first()[0] == "{df}"
    assert session.tables.registered() == ["df"]
    assert "tables df" in repr(session)


@pytest.mark.spark
@pytest.mark.usefixtures("as_users_have_it")
def test_closing_leaves_a_session_of_the_users_running(spark):
    mine = Session(spark)
    mine.table("gone_after", spark.range(1))
    mine.close()
    assert spark.range(2).count() == 2
    assert not [t for t in spark.catalog.listTables() if t.name == "gone_after"]


def test_errors_in_a_notebook_are_short(monkeypatch):
    fault = SkimqlError("what", hint="this")
    monkeypatch.delenv("SKIMQL_DEBUG", raising=False)
    assert fault._render_traceback_() == ["error: what", "  try: this"]
    monkeypatch.setenv("SKIMQL_DEBUG", "1")
    assert len(fault._render_traceback_()) >= 2
