"""What stands for names in braces; the tables are a stand-in."""

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace

import pytest

from skimql import UnsupportedQuery
from skimql.engine.queries.given import given


class Tables:
    def __init__(self):
        self.there, self.left = ["t"], []

    def registered(self):
        return self.there

    def register(self, name, frame, options):
        self.there.append(name)

    def unregister(self, name):
        self.left.append(name)


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-3, "-3"),
        (0.1, "0.1D"),
        (Decimal("1.50"), "1.50BD"),
        ("it's \\ here", "'it\\'s \\\\ here'"),
        (dt.date(2024, 2, 29), "DATE '2024-02-29'"),
        (dt.datetime(2024, 2, 29, 1, 2, 3), "TIMESTAMP '2024-02-29 01:02:03'"),
    ],
)
def test_values_are_literals(value, literal):
    with given(Tables(), "SELECT {v}, '{{}}'", {"v": value}) as text:
        assert text == f"SELECT {literal}, '{{}}'"


@pytest.mark.parametrize(
    ("text", "values"),
    [("{missing}", {"v": 1}), ("{v", {"v": 1}), ("{v}", {"v": [1]}), ("{v}", {"v": float("nan")})],
)
def test_what_has_no_value_or_literal_is_refused(text, values):
    with pytest.raises(UnsupportedQuery) as refused, given(Tables(), text, values):
        pass
    assert refused.value.code == "SKIMQL_BAD_VALUE"


def test_a_frame_is_a_table_as_long_as_the_statement_runs():
    tables = Tables()
    frame = SimpleNamespace(schema=None, selectExpr=None)
    with given(tables, "FROM {t} a, {t} b", {"t": frame}) as text:
        name = tables.there[-1]
        assert (name != "t", tables.left) == (True, [])
        assert text == f"FROM `{name}` a, `{name}` b"
    assert tables.left == [name]


def test_a_frame_is_gone_where_another_value_is_refused():
    tables = Tables()
    frame = SimpleNamespace(schema=None, selectExpr=None)
    with pytest.raises(UnsupportedQuery), given(tables, "{t} {v}", {"t": frame, "v": [1]}):
        pass
    assert tables.left == tables.there[1:]
