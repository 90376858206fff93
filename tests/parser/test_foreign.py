"""Expressions that come out of a file: read again before Spark may see them."""

import pytest

from skimql.errors import UnsupportedQuery
from skimql.parser.foreign import refuse_foreign, refuse_foreign_type


@pytest.mark.parametrize(
    "text",
    [
        "`n` > 3 AND lower(`w`) LIKE 'a%'",
        "CAST(`n` AS BIGINT)",
        "`date` BETWEEN DATE '2020-01-01' AND DATE '2020-02-01'",
    ],
)
def test_what_only_computes_is_let_through(text):
    refuse_foreign(text)


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'exit', 1)",
        "`n` IN (SELECT k FROM t)",
        "`n`; DROP TABLE t",
        "java_method('a', 'b')",
        "`n` -- x\n > 1",
        "mine(`n`)",
    ],
)
def test_what_could_do_more_is_refused(text):
    with pytest.raises(UnsupportedQuery):
        refuse_foreign(text)


def test_types_of_keys_are_those_that_keys_are_compared_in():
    refuse_foreign_type("bigint")
    refuse_foreign_type("decimal(10,2)")
    for name in ("struct<a:int>", "bigint) OR (1", ""):
        with pytest.raises(UnsupportedQuery):
            refuse_foreign_type(name)
