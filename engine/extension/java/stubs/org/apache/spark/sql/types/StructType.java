package org.apache.spark.sql.types;

public class StructType extends DataType {}
