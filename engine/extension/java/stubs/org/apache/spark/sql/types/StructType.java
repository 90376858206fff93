package org.apache.spark.sql.types;

public class StructType extends DataType {
  public int length() {
    throw new Error();
  }

  public StructField apply(int number) {
    throw new Error();
  }
}
