package org.apache.spark.sql.catalyst.parser;

public interface ParameterContext {}
