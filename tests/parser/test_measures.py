"""What keys add: which aggregates add up, and the SQL of each."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.errors import UnknownName, UnsupportedQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM "


def read(text):
    return resolve_sampled(parse_statement(f"{text} USING sampled_query"), SCHEMA)


def test_distinct_values_add_up_where_they_have_the_key_among_them():
    query = read("SELECT APPROXIMATE COUNT(DISTINCT b.k) AS d FROM a LEFT JOIN b ON a.k = b.k")
    assert query.ones == ("COUNT(DISTINCT b.k)",)
    read("SELECT APPROXIMATE COUNT(DISTINCT a.v, a.k) AS d FROM a JOIN b ON a.k = b.k")
    for some in (
        "CASE WHEN a.v > 1 THEN a.k WHEN b.v = 1 THEN (a.k) END",
        "IF(a.v > 1, NULL, IF(b.v > 1, a.k, NULL))",
    ):
        assert read(f"SELECT APPROXIMATE COUNT(DISTINCT {some}) AS d FROM a JOIN b ON a.k = b.k").ones
    for other in ("CASE WHEN a.v > 1 THEN a.k ELSE 0 END", "IF(a.v > 1, a.k, a.j)", "a.k + 1"):
        with pytest.raises(UnsupportedQuery, match="adds up over keys only where"):
            read(f"SELECT APPROXIMATE COUNT(DISTINCT {other}) AS d FROM a JOIN b ON a.k = b.k")
    with pytest.raises(
        UnsupportedQuery, match=r"adds up over keys only where x has the key in it: k"
    ) as raised:
        read("SELECT APPROXIMATE COUNT(DISTINCT a.v) AS d FROM a JOIN b ON a.k = b.k")
    assert raised.value.code == "SKIMQL_NOT_DECOMPOSED"


def test_aggregates_that_do_not_add_up_are_refused():
    for item in (
        "MAX(a.v)",
        "MIN(a.v) FILTER (WHERE a.j > 1)",
        "MAX(CAST(a.v AS STRING))",
        "SUM(DISTINCT a.k)",
        "collect_list(a.v)",
        "PERCENTILE(a.v, array(0.5, 0.9))",
        "STDDEV(DISTINCT a.v)",
        "MEDIAN(DISTINCT a.v)",
    ):
        with pytest.raises(UnsupportedQuery) as raised:
            read(f"SELECT APPROXIMATE {item} AS x FROM a JOIN b ON a.k = b.k")
        assert raised.value.code == "SKIMQL_UNSUPPORTED_AGGREGATE"
    with pytest.raises(UnknownName):
        read("SELECT APPROXIMATE SUM(a.w) AS x FROM a JOIN b ON a.k = b.k")


def test_a_measure_is_the_users_text_with_its_filter():
    query = read(
        "SELECT APPROXIMATE AVG(a.v + b.v) FILTER (WHERE a.j > 1) AS m, COUNT(*) AS n FROM a JOIN b ON a.k = b.k"
    )
    only = "FILTER (WHERE a.j > 1)"
    assert query.measures == (f"SUM(a.v + b.v) {only}", f"COUNT(a.v + b.v) {only}", "COUNT(*)")


def test_deviations_are_moments_around_each_keys_own_mean_and_quantiles_its_values():
    query = read(
        "SELECT APPROXIMATE STDDEV(a.v) AS s, CORR(a.v, b.v) FILTER (WHERE a.j > 1) AS c, APPROX_PERCENTILE(b.v, 0.9) AS q"
        " FROM a JOIN b ON a.k = b.k"
    )
    only = "FILTER (WHERE a.j > 1)"
    # As Spark takes them: a mean of decimals would be rounded, and text that is no number counted.
    x, y = "CAST(a.v AS DOUBLE)", "CAST(b.v AS DOUBLE)"
    assert query.measures == (
        f"VAR_POP({x})",
        f"AVG({x})",
        f"COUNT({x})",
        f"COVAR_POP({x}, {y}) {only}",
        f"REGR_AVGX({y}, {x}) {only}",
        f"REGR_AVGY({y}, {x}) {only}",
        f"REGR_SXX({y}, {x}) {only}",
        f"REGR_SYY({y}, {x}) {only}",
        f"REGR_COUNT({y}, {x}) {only}",
        "COLLECT_LIST(CAST(b.v AS DOUBLE))",
        "COUNT(b.v)",
    )
    assert [a.function for a in query.aggregates] == ["stddev_samp", "corr", "percentile_approx"]
    assert query.aggregates[2].total[0].coefficient == 0.9
