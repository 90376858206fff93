package org.apache.spark.sql.catalyst.expressions;

public abstract class Expression {
  public abstract boolean foldable();

  public abstract org.apache.spark.sql.types.DataType dataType();

  public abstract Object eval(org.apache.spark.sql.catalyst.InternalRow row);

  public abstract String sql();
}
