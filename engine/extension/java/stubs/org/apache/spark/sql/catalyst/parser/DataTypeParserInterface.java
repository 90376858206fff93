package org.apache.spark.sql.catalyst.parser;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

public interface DataTypeParserInterface {
  StructType parseTableSchema(String text);

  DataType parseDataType(String text);
}
