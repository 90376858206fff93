package org.apache.spark.sql.catalyst;

public class TableIdentifier {}
