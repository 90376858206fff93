"""What APPEND refuses: what would put tuples of another meaning into a sketch."""

from dataclasses import replace

import pytest
from support.kept_kinds import of_kind

from skimql import UnsupportedQuery
from skimql.engine.materialized.appending import differences, refuse_other_circumstances
from skimql.engine.sources.environment import Circumstances
from skimql.parser.join_graph import Column

HEAD = replace(of_kind("s", "hash").head, ansi=True, time_zone="UTC", settings=())


@pytest.mark.parametrize(
    ("now", "zoned", "told"),
    [
        (Circumstances(True, "Asia/Tokyo"), False, None),
        (Circumstances(True, "Asia/Tokyo"), True, "timeZone is Asia/Tokyo and was UTC"),
        (Circumstances(False, "UTC"), True, "ansi.enabled is false and was true"),
        (Circumstances(True, "UTC", (("a.b", "x"),)), False, "a.b is x and was its default"),
    ],
)
def test_settings_by_which_expressions_have_other_values_are_refused(now, zoned, told):
    head = replace(HEAD, zoned=zoned)
    if told is None:
        refuse_other_circumstances(head, now, "APPEND", (0, 6))
        return
    with pytest.raises(UnsupportedQuery, match=told) as caught:
        refuse_other_circumstances(head, now, "APPEND", (0, 6))
    assert (caught.value.code, caught.value.span) == ("SKIMQL_OTHER_DEFINITION", (0, 6))


def test_one_filter_over_columns_of_other_types_is_not_one_definition():
    mine, theirs = (
        replace(
            HEAD, filter="`st` > '6'", columns=(Column("K", "int"), Column("st", kind), Column("z", kind))
        )
        for kind in ("int", "string")
    )
    assert differences(mine, theirs) == ["other types of columns"]
    assert differences(mine, mine) == []
    unread = replace(mine, columns=(*mine.columns[:2], Column("z", "string")))
    assert differences(mine, unread) == [], "of a column that neither reads"
    assert differences(mine, replace(mine, columns=mine.columns[:2])) == []
