package org.apache.spark.sql.internal;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;

public class SessionState {
  public SQLConf conf() {
    throw new Error();
  }

  public org.apache.spark.sql.catalyst.parser.ParserInterface sqlParser() {
    throw new Error();
  }

  public org.apache.spark.sql.catalyst.analysis.FunctionRegistry functionRegistry() {
    throw new Error();
  }

  public org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry tableFunctionRegistry() {
    throw new Error();
  }

  public org.apache.spark.sql.catalyst.catalog.SessionCatalog catalog() {
    throw new Error();
  }

  public QueryExecution executePlan(LogicalPlan plan, scala.Enumeration.Value mode) {
    throw new Error();
  }

  public scala.Enumeration.Value executePlan$default$2() {
    throw new Error();
  }
}
