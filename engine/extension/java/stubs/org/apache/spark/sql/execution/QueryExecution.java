package org.apache.spark.sql.execution;

public class QueryExecution {
  public void assertAnalyzed() {}

  public org.apache.spark.sql.catalyst.plans.logical.LogicalPlan analyzed() {
    throw new Error();
  }
}
