package org.apache.spark.sql.catalyst.analysis;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

public interface TableFunctionRegistry extends FunctionRegistryBase<LogicalPlan> {
  static SimpleTableFunctionRegistry builtin() {
    throw new Error();
  }
}
