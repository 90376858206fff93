package org.apache.spark.sql;

public class Column {
  public Column cast(String type) {
    throw new Error();
  }

  public Column isNotNull() {
    throw new Error();
  }

  public Column multiply(Object other) {
    throw new Error();
  }

  public Column getField(String name) {
    throw new Error();
  }
}
