"""Join keys as SQL, and the types in which they are compared; nothing of Spark runs."""

import pytest
from support.questions import query
from support.schemas import schema, table

from skimql import UnsupportedQuery
from skimql.engine.sources.keys import compared_text, is_column, key_text, with_key_types
from skimql.optimizer.plan import Attribute

TABLES = schema(
    table("a", k="int", s="string", d="array<int>"), table("b", k="bigint", s="string", d="array<int>")
)


def test_one_whole_number_is_itself_and_all_else_is_hashed():
    assert key_text(Attribute(("`k`",), ("int",), "k")) == "CAST(CAST(`k` AS int) AS BIGINT)"
    text = key_text(Attribute(("`k`", "`s`"), ("int", "string"), "k"))
    assert text.startswith("CASE WHEN CAST(`k` AS int) IS NOT NULL AND ")
    assert text.endswith("THEN xxhash64(CAST(`k` AS int), CAST(`s` AS string)) END")


def test_padded_text_is_compared_without_its_blanks():
    from skimql.engine.sources.keys import PADDED

    assert compared_text("`c`", PADDED) == "rtrim(CAST(`c` AS STRING))"


@pytest.mark.parametrize(
    ("text", "column"), [("`k`", True), ("`odd``name`", True), ("`k` + 1", False), ("k", False)]
)
def test_what_is_a_column(text, column):
    assert is_column(text) is column


def test_types_of_expressions_are_known_or_asked_for():
    asked = query("COUNT(*) FROM a JOIN b ON a.k + 1 = b.k", TABLES)
    (edge,) = asked.graph.edges
    known = {("a", edge.left_keys[0]): "int", ("b", edge.right_keys[0]): "bigint"}
    assert with_key_types(asked, None, True, known).graph.edges[0].key_types == ("bigint",)
    typed = query("COUNT(*) FROM a JOIN b ON a.k = b.k", TABLES)
    assert with_key_types(typed, None, True).graph.edges == typed.graph.edges


def test_what_spark_does_not_compare_is_refused():
    asked = query("COUNT(*) FROM a JOIN b ON a.k + 1 = b.k", TABLES)
    (edge,) = asked.graph.edges
    with pytest.raises(UnsupportedQuery) as refused:
        with_key_types(
            asked, None, True, {("a", edge.left_keys[0]): "date", ("b", edge.right_keys[0]): "bigint"}
        )
    assert refused.value.code == "SKIMQL_INCOMPARABLE_KEYS"
