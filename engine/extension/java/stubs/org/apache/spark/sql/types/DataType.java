package org.apache.spark.sql.types;

public class DataType {
  public static DataType fromJson(String json) {
    throw new Error();
  }

  public String simpleString() {
    throw new Error();
  }

  public String typeName() {
    throw new Error();
  }
}
