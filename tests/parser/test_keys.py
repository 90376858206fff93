"""Keys of rows: of which types, and what joins make of them."""

from support.sampled_queries import SCHEMA

from skimql.parser.join_graph import Column, TableSchema
from skimql.parser.keys import kind_of, widest_kind
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM "


def test_kinds_are_types_whose_equal_values_are_the_same_bytes():
    assert {kind_of(t) for t in ("tinyint", "int", "bigint")} == {"integer"}
    assert kind_of("varchar(3)") == kind_of("string") == "string"
    assert kind_of("decimal(10,2)") != kind_of("decimal(12,2)")
    assert [kind_of(t) for t in ("double", "char(3)", "string collate UTF8_LCASE", "array<int>")] == [
        None
    ] * 4
    assert widest_kind(["int", "bigint", "smallint"]) == "bigint"


def test_columns_of_other_types_are_no_class():
    kinds = {"a": "bigint", "b": "string", "c": "int", "d": "double"}
    schema = {n: TableSchema(n, (Column("k", kind), Column("v", "int"))) for n, kind in kinds.items()}

    def filtered(source):
        text = f"{SELECT}{source} USING sampled_query"
        return [r.table for r in resolve_sampled(parse_statement(text), schema).ways[0].roles]

    assert filtered("a JOIN c ON a.k = c.k") == ["a", "c"]
    assert filtered("a JOIN b ON a.k = b.k") in (["a"], ["b"])
    assert filtered("d JOIN d e ON d.k = e.k") in (["d"],)


def test_after_a_full_join_the_key_is_that_of_whichever_side_is_there():
    text = f"{SELECT}a FULL JOIN b ON a.k = b.k FULL JOIN c ON a.k = c.k USING sampled_query"
    assert (
        resolve_sampled(parse_statement(text), SCHEMA).ways[0].key
        == "coalesce(coalesce(`a`.`k`, `b`.`k`), `c`.`k`)"
    )
