"""What is in a query, itself among it."""

from support.sampled_queries import SCHEMA

from skimql.parser.block_reader import BlockReader
from skimql.parser.blocks import blocks_in, names_in, outputs_of, tables_in
from skimql.parser.scope import Scope
from skimql.parser.select import parse_select


def test_what_is_in_a_query_is_found_wherever_it_stands():
    text = (
        "WITH w AS (SELECT k FROM a) SELECT w.k, (SELECT MAX(v) FROM b) FROM w JOIN (SELECT k FROM c UNION SELECT k FROM d) t"
        " ON w.k = t.k AND w.k IN (SELECT j FROM a) WHERE EXISTS (SELECT 1 FROM w x)"
    )
    body = BlockReader(Scope(parse_select(text), text, SCHEMA)).read()
    assert sorted(r.table for r in tables_in(body)) == ["a", "a", "a", "b", "c", "d"]
    assert [n.name for n in names_in(body)] == ["w", "w"]
    assert len(list(blocks_in(body))) == 8
    assert [name for name, _ in outputs_of(body)] == ["k", "?"]
