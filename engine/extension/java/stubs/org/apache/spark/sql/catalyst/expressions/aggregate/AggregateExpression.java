package org.apache.spark.sql.catalyst.expressions.aggregate;

import org.apache.spark.sql.catalyst.expressions.Expression;

public abstract class AggregateExpression extends Expression {
  public AggregateFunction aggregateFunction() {
    throw new Error();
  }
}
