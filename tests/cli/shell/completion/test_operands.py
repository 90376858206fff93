"""What may be a value."""

from __future__ import annotations

from support.completion_cases import NAMES

from skimql.cli.shell.completion.operands import qualified, relations_seen
from skimql.cli.shell.completion.place import find_place


def place(text):
    return find_place(text.replace("|", ""), text.index("|"), NAMES)


def test_a_subquery_of_an_expression_sees_what_is_around_it_and_one_of_from_does_not():
    seen = relations_seen(
        place("SELECT * FROM flights f WHERE EXISTS (SELECT * FROM planes p WHERE |"), NAMES
    )
    assert [r.alias for r in seen] == ["p", "f"]
    seen = relations_seen(place("SELECT * FROM flights f JOIN (SELECT * FROM planes p WHERE |"), NAMES)
    assert [r.alias for r in seen] == ["p"]


def test_an_alias_that_is_still_to_come_has_columns_of_any_table():
    assert [c for c, _, _ in qualified(place("SELECT c.seg|"), NAMES)] == ["segment"]
    assert list(qualified(place("SELECT c.|"), NAMES)) == []
