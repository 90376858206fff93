"""Settings of Spark that change what a text means."""

import pytest

from skimql import UnsupportedQuery
from skimql.engine.sources.settings_followed import refuse_not_followed


@pytest.mark.parametrize(
    ("setting", "sql"),
    [
        (("spark.sql.caseSensitive", "true"), "SELECT 1"),
        (("spark.sql.groupByOrdinal", "false"), "SELECT n FROM x GROUP BY 1"),
        (("spark.sql.parser.escapedStringLiterals", "true"), "SELECT 'a\\n'"),
    ],
)
def test_a_statement_that_they_give_another_meaning_is_refused_with_the_way_back(setting, sql):
    with pytest.raises(UnsupportedQuery) as fault:
        refuse_not_followed(sql, [setting])
    assert (fault.value.code, setting[0] in fault.value.hint) == ("SKIMQL_SPARK_SETTING", True)


@pytest.mark.parametrize(
    ("setting", "sql"),
    [
        (("spark.sql.groupByOrdinal", "false"), "SELECT n FROM x"),
        (("spark.sql.parser.escapedStringLiterals", "true"), "SELECT 'a', r'b\\n'"),
        (("spark.sql.caseSensitive", "false"), "SELECT 1"),
    ],
)
def test_any_other_statement_passes(setting, sql):
    refuse_not_followed(sql, [setting])
