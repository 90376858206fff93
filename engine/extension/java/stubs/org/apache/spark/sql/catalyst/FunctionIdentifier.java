package org.apache.spark.sql.catalyst;

public class FunctionIdentifier {
  public FunctionIdentifier(String name) {}

  public FunctionIdentifier(String name, scala.Option<String> database, scala.Option<String> catalog) {}

  public String funcName() {
    throw new Error();
  }

  public scala.Option<String> database() {
    throw new Error();
  }

  public scala.Option<String> catalog() {
    throw new Error();
  }
}
