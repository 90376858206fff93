"""`%skimql` and `%%skimql` in an IPython shell, on tables in memory."""

from __future__ import annotations

import pytest

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell

import skimql
from skimql.cli import notebook


class Asked(skimql.Session):
    """Notes what it is asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def sql(self, text, **values):
        self.asked.append((text, values))
        return skimql.Answer(("n",), ((1,),), exact=True)

    def compare(self, text, exact_sql=None):
        self.asked.append((text, "compare"))
        return skimql.Answer(("n",), ((2,),), exact=True)


@pytest.fixture(scope="module")
def shell():
    made = InteractiveShell(history_load_length=0)
    made.history_manager.enabled = False
    made.extension_manager.load_extension("skimql")
    return made


@pytest.fixture
def asked(shell):
    session = shell.user_ns["session"] = Asked()
    shell.user_ns["month"] = 6
    return session.asked


def test_a_line_and_a_cell_are_asked(shell, asked):
    assert shell.run_line_magic("skimql", "SELECT 1;").rows == ((1,),)
    shell.run_cell_magic("skimql", "", "SELECT\n 2;\n")
    assert asked == [("SELECT 1", {}), ("SELECT\n 2", {})]


def test_a_name_takes_the_result(shell, asked):
    assert shell.run_cell_magic("skimql", "found <<", "SELECT 1") is None
    assert shell.user_ns["found"].rows == ((1,),)
    shell.run_line_magic("skimql", "other << --compare SELECT 1")
    assert shell.user_ns["other"].rows == ((2,),)


def test_a_format_prints(shell, asked, capsys):
    shell.run_cell_magic("skimql", "-o csv", "SELECT 1")
    assert capsys.readouterr().out == "n\n1\n"
    with pytest.raises(skimql.SkimqlError, match="there is no format 'nonsense'"):
        notebook.Magics(shell).run("-o nonsense SELECT 1")


def test_variables_are_values_and_not_text(shell, asked):
    shell.user_ns["text"] = "x' OR '1' = '1"
    notebook.Magics(shell).run("SELECT {month}, {text}")
    assert asked == [("SELECT {month}, {text_}", {"month": 6, "text_": "x' OR '1' = '1"})]
    with pytest.raises(skimql.UnsupportedQuery) as fault:
        notebook.Magics(shell).run("SELECT {nobody}")
    assert fault.value.code == "SKIMQL_BAD_VALUE"


def test_an_error_is_shown_without_a_traceback(shell, capsys):
    shell.user_ns["session"] = skimql.Session()
    shell.run_cell("%skimql SHOW SKETCHES FOR")
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert "error:" in said.out + said.err
