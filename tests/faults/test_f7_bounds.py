"""Numbers, terms, joins and texts without a bound; pure."""

from __future__ import annotations

import pytest
from support.effort import counted_calls
from support.questions import query
from support.schemas import schema, table

from skimql import Settings
from skimql.errors import SkimqlError
from skimql.parser.amounts import BadNumber, byte_count, share, whole
from skimql.parser.statement import ExactSelect, PassThrough, parse_statement

TABLES = schema(table("a", k="int", x="int", t="string"), table("b", k="int", y="int"))
JOINED = " FROM a JOIN b ON a.k = b.k "


def refused(text):
    with pytest.raises(SkimqlError) as caught:
        query(text, TABLES)
    return caught.value


def test_one_number_is_written_in_many_ways():
    assert {whole(t) for t in ("4096", "4,096", "4_096", "4k", "4K", "4.096e3")} == {4096}
    assert {byte_count(t) for t in ("65536", "64 KB", "64KiB", "64k", "0.0625 MB")} == {65536}
    assert share("5%") == share("0.05") == 0.05


@pytest.mark.parametrize("read", [whole, byte_count, share])
@pytest.mark.parametrize(
    "text",
    ["", "x", "inf", "nan", "9e999", "9" * 5000, "1" + "0" * 400 + " KB", "0x10", "1__2", "-1", "٣", "²", "1 2"],
)  # fmt: skip
def test_what_is_no_number_within_bounds_is_refused_everywhere(read, text):
    with pytest.raises(BadNumber):
        read(text)


@pytest.mark.parametrize("number", ["9" * 5000, "9e999", "1" + "0" * 400, "inf", "nan", "0x1F", "5 %%"])
@pytest.mark.parametrize(
    "name",
    ["seed", "rows", "buckets", "size_bytes", "confidence", "error", "max_groups", "fold_bytes", "max_bytes"],
)
def test_no_setting_takes_them(name, number):  # fmt: skip
    with pytest.raises(SkimqlError) as caught:
        Settings().with_text({name: number})
    assert caught.value.code == "SKIMQL_BAD_SETTING"
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "clause",
    ["SIZE 1{} KB", "SIZE 9e999 TB", "SEED 1{}", "ERROR WITHIN 0.{}1", "LIMIT 1{}", "ORDER BY 1{}", "WHERE a.x = 1{}", "HAVING COUNT(*) > 1{}",
     "GROUP BY 1{}", "WHERE a.x = 1e999", "WHERE a.x = 1e", "OFFSET 1e3000"],
)  # fmt: skip
def test_no_clause_takes_them(clause):
    refused("COUNT(*)" + JOINED + clause.format("0" * 5000))


def test_above_one_the_percent_is_suggested():
    with pytest.raises(SkimqlError) as caught:
        Settings().with_text({"error": "5"})
    assert caught.value.hint == "error = 5%"
    assert refused(f"COUNT(*){JOINED}ERROR WITHIN 7").hint == "ERROR WITHIN 7%"
    assert Settings().with_text({"error": "5%"}).error == 0.05


def test_buckets_take_a_unit_wherever_they_stand():
    read = query(f"COUNT(*){JOINED}OPTIONS (buckets = 4k, max_bytes = 1 GB)", TABLES)
    chosen = Settings().with_text(read.options)
    assert (chosen.buckets, chosen.max_bytes) == (4096, 1 << 30)


def test_equal_products_are_one_term():
    (aggregate,) = query("SUM(" + " * ".join(["(a.x + b.y)"] * 12) + ")" + JOINED, TABLES).aggregates
    assert sorted(t.coefficient for t in aggregate.total)[-1] == 924.0
    assert len(aggregate.total) == 13
    different = " * ".join(f"(a.x + {i} * b.y)" for i in range(1, 13))
    assert refused(f"SUM({different}){JOINED}").code == "SKIMQL_CROSS_EXPRESSION"


def test_a_sum_that_cancels_still_skips_null():
    (aggregate,) = query("AVG(a.x * b.y - b.y * a.x)" + JOINED, TABLES).aggregates
    assert [t.coefficient for t in aggregate.total] == [0.0]
    assert [f.expression for f in aggregate.presence[0].factors] == ["`x`", "`y`"]


@pytest.mark.parametrize("joins", [", ", " JOIN ", " CROSS JOIN "])
def test_thirty_tables_without_on_are_refused_at_once(joins):
    text = "COUNT(*) FROM " + joins.join(f"a a{i}" for i in range(30))
    with counted_calls() as calls:
        assert refused(text).code == "SKIMQL_CROSS_PRODUCT"
    assert calls.number < 200_000


@pytest.mark.parametrize("call", ["COUNT()", "COUNT(DISTINCT)", "SUM()", "AVG()", "COUNT_IF()"])
def test_an_aggregate_of_nothing_is_refused(call):
    refused(call + JOINED)


@pytest.mark.parametrize(
    "text", ["ESTIMATE ROWS FOR SELECT FROM a", "SELECT APPROXIMATE COUNT(*) FROM (SELECT FROM a) z"]
)
def test_an_empty_select_list_is_refused(text):
    from skimql.parser.resolve import resolve, resolve_rows
    from skimql.parser.statement import ApproximateSelect

    statement = parse_statement(text)
    read = resolve if isinstance(statement, ApproximateSelect) else resolve_rows
    with pytest.raises(SkimqlError):
        read(statement, TABLES)


def test_long_texts_are_read_and_long_lists_refused():
    assert query(f"COUNT(*){JOINED}WHERE a.t = '{'x' * 2_000_000}'", TABLES)
    values = ",".join(map(str, range(25_000)))
    plain = f"SELECT COUNT(*) FROM a WHERE x IN ({values})"
    assert refused(plain.replace("SELECT", "SELECT APPROXIMATE", 1)).code == "SKIMQL_TOO_LONG"
    assert isinstance(parse_statement(plain), PassThrough)
    assert parse_statement("EXACT " + plain) == ExactSelect("EXACT " + plain, "      " + plain)


@pytest.mark.parametrize(
    "text",
    ["COUNT(*) FROM a WHERE " + "(" * 10_000 + "x = 1" + ")" * 10_000, "COUNT(*) FROM a " + "/*" * 10_000 + "*/" * 10_000,
     "SUM(" + "CASE WHEN a.x = 1 THEN " * 500 + "b.y" + " END" * 500 + ")" + JOINED, "SUM(" + " * ".join(["a.x", "b.y"] * 1000) + ")" + JOINED,
     "SUM(" + " + ".join(["a.x", "b.y"] * 1500) + ")" + JOINED, "COUNT(*) FROM a WHERE " + " AND ".join(f"x > {i}" for i in range(2000))],
)  # fmt: skip
def test_deep_texts_end(text):
    fault = None
    try:
        query(text, TABLES)
    except SkimqlError as error:
        fault = error
    assert fault is None or fault.code in ("SKIMQL_TOO_DEEP", "SKIMQL_CROSS_EXPRESSION")
