package org.apache.spark.sql.classic;

public class Dataset<T> {
  public org.apache.spark.sql.execution.QueryExecution queryExecution() {
    throw new Error();
  }
}
