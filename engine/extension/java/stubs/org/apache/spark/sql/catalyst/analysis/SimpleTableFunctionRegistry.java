package org.apache.spark.sql.catalyst.analysis;

public abstract class SimpleTableFunctionRegistry implements TableFunctionRegistry {}
