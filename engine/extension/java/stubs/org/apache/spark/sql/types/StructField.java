package org.apache.spark.sql.types;

public class StructField {
  public String name() {
    throw new Error();
  }

  public DataType dataType() {
    throw new Error();
  }
}
