package org.apache.spark.sql.catalyst.parser;

public class SqlStatementSplitResult {}
