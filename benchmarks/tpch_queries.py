"""The 22 queries of TPC-H with the validation parameters of its specification, as questions.

`SCHEMA` has the tables.
"""

from __future__ import annotations

from pathlib import Path

from skimql.parser.join_graph import Column, TableSchema

_TABLES = {
    "part": "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, "
    "p_container string, p_retailprice decimal(15,2), p_comment string",
    "supplier": "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string, "
    "s_acctbal decimal(15,2), s_comment string",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost decimal(15,2), "
    "ps_comment string",
    "customer": "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, c_phone string, "
    "c_acctbal decimal(15,2), c_mktsegment string, c_comment string",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice decimal(15,2), "
    "o_orderdate date, o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, "
    "l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), "
    "l_returnflag string, l_linestatus string, l_shipdate date, l_commitdate date, l_receiptdate date, "
    "l_shipinstruct string, l_shipmode string, l_comment string",
    "nation": "n_nationkey bigint, n_name string, n_regionkey bigint, n_comment string",
    "region": "r_regionkey bigint, r_name string, r_comment string",
}

SCHEMA = {
    name: TableSchema(name, tuple(Column(*c.strip().split(" ")) for c in columns.split(", ")))
    for name, columns in _TABLES.items()
}

# Those that are the sum of what each key of a join class adds.
DECOMPOSE = (1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 17, 19, 21, 22)

TEXTS = Path(__file__).parents[1] / "tests" / "fixtures" / "tpch"
QUERIES = {number: (TEXTS / f"q{number:02}.sql").read_text().strip() for number in range(1, 23)}


def approximate(number: int, clauses: str = "") -> str:
    """A query as it is asked, with what stands behind it: ``ERROR WITHIN 10% USING sampled_query``."""
    text = QUERIES[number]
    at = text.rindex("\nselect ") + 1 if text.startswith("with") else 0
    return f"{text[:at]}SELECT APPROXIMATE{text[at + len('select') :]} {clauses}"
