package org.apache.spark.sql.catalyst.expressions.aggregate;

public abstract class AggregateFunction extends org.apache.spark.sql.catalyst.expressions.Expression {}
