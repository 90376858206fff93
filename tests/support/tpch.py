"""The TPC-H schema and its 22 queries (parameters of the specification's validation run)."""

from __future__ import annotations

from pathlib import Path

from support.schemas import schema, table

MONEY = "decimal(15,2)"

TABLES = schema(
    table("region", r_regionkey="bigint", r_name="string", r_comment="string"),
    table("nation", n_nationkey="bigint", n_name="string", n_regionkey="bigint", n_comment="string"),
    table(
        "supplier",
        s_suppkey="bigint",
        s_name="string",
        s_address="string",
        s_nationkey="bigint",
        s_phone="string",
        s_acctbal=MONEY,
        s_comment="string",
    ),
    table(
        "customer",
        c_custkey="bigint",
        c_name="string",
        c_address="string",
        c_nationkey="bigint",
        c_phone="string",
        c_acctbal=MONEY,
        c_mktsegment="string",
        c_comment="string",
    ),
    table(
        "part",
        p_partkey="bigint",
        p_name="string",
        p_mfgr="string",
        p_brand="string",
        p_type="string",
        p_size="int",
        p_container="string",
        p_retailprice=MONEY,
        p_comment="string",
    ),
    table(
        "partsupp",
        ps_partkey="bigint",
        ps_suppkey="bigint",
        ps_availqty="int",
        ps_supplycost=MONEY,
        ps_comment="string",
    ),
    table(
        "orders",
        o_orderkey="bigint",
        o_custkey="bigint",
        o_orderstatus="string",
        o_totalprice=MONEY,
        o_orderdate="date",
        o_orderpriority="string",
        o_clerk="string",
        o_shippriority="int",
        o_comment="string",
    ),
    table(
        "lineitem",
        l_orderkey="bigint",
        l_partkey="bigint",
        l_suppkey="bigint",
        l_linenumber="int",
        l_quantity=MONEY,
        l_extendedprice=MONEY,
        l_discount=MONEY,
        l_tax=MONEY,
        l_returnflag="string",
        l_linestatus="string",
        l_shipdate="date",
        l_commitdate="date",
        l_receiptdate="date",
        l_shipinstruct="string",
        l_shipmode="string",
        l_comment="string",
    ),
)

FOLDER = Path(__file__).parents[1] / "fixtures" / "tpch"


def tpch_query(number):
    """The text of one of the queries."""
    return (FOLDER / f"q{number:02d}.sql").read_text()
