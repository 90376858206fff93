package org.apache.spark.sql.classic;

public final class ExpressionUtils {
  public static org.apache.spark.sql.Column column(org.apache.spark.sql.catalyst.expressions.Expression expression) {
    throw new Error();
  }
}
