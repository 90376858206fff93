package org.apache.spark.sql.catalyst.expressions;

public abstract class Expression {
  public abstract boolean foldable();

  public abstract Object eval(org.apache.spark.sql.catalyst.InternalRow row);

  public abstract String sql();
}
