package org.apache.spark.sql.types;

public class DataType {
  public String simpleString() {
    throw new Error();
  }
}
