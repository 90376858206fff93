package org.apache.spark.sql;

public class RowFactory {
  public static Row create(Object... values) {
    throw new Error();
  }
}
