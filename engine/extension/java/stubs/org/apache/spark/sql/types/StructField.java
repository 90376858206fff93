package org.apache.spark.sql.types;

public class StructField {
  public DataType dataType() {
    throw new Error();
  }
}
