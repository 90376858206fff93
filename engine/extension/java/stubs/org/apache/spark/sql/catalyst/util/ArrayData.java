package org.apache.spark.sql.catalyst.util;

public abstract class ArrayData {
  public abstract int numElements();

  public abstract boolean isNullAt(int place);

  public abstract byte[] getBinary(int place);
}
