package org.apache.spark;

public final class SparkThrowableHelper$ {
  public static final SparkThrowableHelper$ MODULE$ = null;

  public ErrorClassesJsonReader errorReader() {
    throw new Error();
  }
}
