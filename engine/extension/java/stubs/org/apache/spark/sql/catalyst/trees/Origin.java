package org.apache.spark.sql.catalyst.trees;

public class Origin {
  public org.apache.spark.QueryContext[] getQueryContext() {
    throw new Error();
  }
}
