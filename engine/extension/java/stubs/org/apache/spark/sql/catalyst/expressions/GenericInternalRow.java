package org.apache.spark.sql.catalyst.expressions;

public class GenericInternalRow extends org.apache.spark.sql.catalyst.InternalRow {
  public GenericInternalRow(Object[] values) {}
}
