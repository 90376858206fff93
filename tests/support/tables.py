"""Small tables that many tests share, and how to register rows under a name."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, DateType, NumericType, StringType, StructType

from skimql.optimizer.messages import receiver_of, tree_of, whole

# name -> (schema, rows): the tables of the shared cases.
CASES = {
    "x": ("id INT, n INT", [(1, 10), (2, 20)]),
    "y": ("id INT, m INT", [(1, 100), (1, 101), (3, 300)]),
    "z": ("id INT, w STRING", [(1, "p"), (1, "q")]),
}


# What (name, schema, rows) became, once a run.
_frames = {}
_PLAIN = (NumericType, StringType, BooleanType, DateType)


def register(session, **tables):
    """Register name=(schema, rows) as DataFrames."""
    for name, (schema, rows) in tables.items():
        key = id(session.spark), name, schema, repr(rows)
        if key not in _frames:
            _frames[key] = _local(session.spark, StructType.fromDDL(schema), rows)
        session.table(name, _frames[key])


def forget_views(spark):
    """Drop all temporary views in one call: listing them first costs a query."""
    spark._jsparkSession.sessionState().catalog().clearTempTables()


def _local(spark, schema, rows):
    """A local relation where Arrow has these types, which Spark reads in half the time of rows of Python's."""
    if not all(isinstance(f.dataType, _PLAIN) for f in schema):
        return spark.createDataFrame(rows, schema)
    fields = to_arrow_schema(schema)
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=fields), schema)


def register_cases(session):
    """Register x, y and z."""
    register(session, **CASES)


def folded(graph, *vertices):
    """What is left of a query's join tree when these vertices are folded, in this order."""
    residual = whole(tree_of(graph))
    for vertex in vertices:
        residual = residual.without(vertex, receiver_of(residual, vertex))
    return residual
