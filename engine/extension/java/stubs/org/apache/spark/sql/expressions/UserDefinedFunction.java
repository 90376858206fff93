package org.apache.spark.sql.expressions;

import org.apache.spark.sql.Column;

public abstract class UserDefinedFunction {
  public Column apply(Column... columns) {
    throw new Error();
  }

  public abstract UserDefinedFunction withName(String name);
}
