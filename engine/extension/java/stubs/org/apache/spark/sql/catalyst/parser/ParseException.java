package org.apache.spark.sql.catalyst.parser;

public class ParseException extends org.apache.spark.sql.AnalysisException {
  private ParseException() {
    super(null, null, null, null, null, null, null);
  }

  public ParseException withCommand(String text) {
    throw new UnsupportedOperationException();
  }
}
