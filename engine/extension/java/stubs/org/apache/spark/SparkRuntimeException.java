package org.apache.spark;

public class SparkRuntimeException extends RuntimeException {
  public SparkRuntimeException(
      String condition,
      scala.collection.immutable.Map<String, String> parameters,
      Throwable cause,
      QueryContext[] contexts,
      String summary) {}
}
