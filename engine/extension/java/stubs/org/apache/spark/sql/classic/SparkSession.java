package org.apache.spark.sql.classic;

public class SparkSession extends org.apache.spark.sql.SparkSession {
  public org.apache.spark.sql.SparkSessionExtensions extensions() {
    throw new Error();
  }

  public org.apache.spark.sql.catalyst.expressions.Expression expression(org.apache.spark.sql.Column column) {
    throw new Error();
  }

  public org.apache.spark.sql.internal.SessionState sessionState() {
    throw new Error();
  }

  public String sessionUUID() {
    throw new Error();
  }

  public Dataset<org.apache.spark.sql.Row> createDataFrame(
      java.util.List<org.apache.spark.sql.Row> rows, org.apache.spark.sql.types.StructType schema) {
    throw new Error();
  }

  public org.apache.spark.SparkContext sparkContext() {
    throw new Error();
  }
}
