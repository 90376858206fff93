package org.apache.spark.sql.catalyst.parser;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** Of Spark 4.0 to 4.3 together. */
public interface ParserInterface extends DataTypeParserInterface {
  LogicalPlan parsePlan(String text);

  LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters);

  LogicalPlan parseQuery(String text);

  Expression parseExpression(String text);

  TableIdentifier parseTableIdentifier(String text);

  FunctionIdentifier parseFunctionIdentifier(String text);

  Seq<String> parseMultipartIdentifier(String text);

  TemporalIdentifier parseTemporalTableIdentifier(String text);

  StructType parseRoutineParam(String text);

  SqlStatementSplitResult splitStatements(String text);
}
