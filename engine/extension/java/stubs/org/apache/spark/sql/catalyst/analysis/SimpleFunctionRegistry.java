package org.apache.spark.sql.catalyst.analysis;

public abstract class SimpleFunctionRegistry implements FunctionRegistry {}
