package org.apache.spark.sql.catalyst.expressions;

public class ExpressionInfo {
  public ExpressionInfo(String type, String name) {}
}
