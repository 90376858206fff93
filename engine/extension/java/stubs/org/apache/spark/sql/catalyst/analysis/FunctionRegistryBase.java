package org.apache.spark.sql.catalyst.analysis;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import scala.Function1;
import scala.collection.immutable.Seq;

public interface FunctionRegistryBase<T> {
  void registerFunction(FunctionIdentifier name, ExpressionInfo info, Function1<Seq<Expression>, T> made);

  Seq<FunctionIdentifier> listFunction();

  boolean functionExists(FunctionIdentifier name);

  boolean dropFunction(FunctionIdentifier name);
}
