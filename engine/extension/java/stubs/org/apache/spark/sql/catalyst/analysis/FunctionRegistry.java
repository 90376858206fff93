package org.apache.spark.sql.catalyst.analysis;

import org.apache.spark.sql.catalyst.expressions.Expression;

public interface FunctionRegistry extends FunctionRegistryBase<Expression> {
  static SimpleFunctionRegistry builtin() {
    throw new Error();
  }
}
