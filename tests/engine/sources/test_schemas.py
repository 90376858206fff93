"""The schema of a DataFrame as the parser sees it; nothing of Spark runs."""

from types import SimpleNamespace

import pytest
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

from skimql.engine.sources.schemas import schema_of

DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
FIELDS = StructType(
    [
        StructField("id", LongType()),
        StructField("price", DecimalType(9, 2)),
        StructField("code", StringType(), metadata={DECLARED: "char(3)"}),
        StructField("name", StringType(), metadata={DECLARED: "varchar(3)"}),
    ]
)


@pytest.mark.parametrize(("as_text", "code"), [("false", "char(3)"), ("true", "string")])
def test_types_are_spark_s_names_and_char_is_itself_where_spark_pads_it(as_text, code):
    conf = SimpleNamespace(get=lambda name, default: as_text if "charVarcharAsString" in name else default)
    frame = SimpleNamespace(schema=FIELDS, sparkSession=SimpleNamespace(conf=conf))
    found = schema_of("t", frame)
    assert found.name == "t"
    assert [(c.name, c.type) for c in found.columns] == [
        ("id", "bigint"),
        ("price", "decimal(9,2)"),
        ("code", code),
        ("name", "string"),
    ]


def test_without_char_no_setting_is_asked_for():
    frame = SimpleNamespace(schema=StructType(FIELDS.fields[:2]))
    assert [c.type for c in schema_of("t", frame).columns] == ["bigint", "decimal(9,2)"]
