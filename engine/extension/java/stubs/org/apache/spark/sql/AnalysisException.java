package org.apache.spark.sql;

public class AnalysisException extends Exception {
  public AnalysisException(
      String message,
      scala.Option<Object> line,
      scala.Option<Object> position,
      scala.Option<Throwable> cause,
      scala.Option<String> condition,
      scala.collection.immutable.Map<String, String> parameters,
      org.apache.spark.QueryContext[] contexts) {}

  public AnalysisException withPosition(org.apache.spark.sql.catalyst.trees.Origin origin) {
    throw new Error();
  }

  public scala.Option<Object> line() {
    throw new Error();
  }

  public String getErrorClass() {
    throw new Error();
  }

  public java.util.Map<String, String> getMessageParameters() {
    throw new Error();
  }
}
