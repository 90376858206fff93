package org.apache.spark.sql.catalyst.expressions.objects;

public abstract class StaticInvoke extends org.apache.spark.sql.catalyst.expressions.Expression {}
