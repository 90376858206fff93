package org.apache.spark.sql.catalyst.analysis;

public class AnalysisContext {
  public static AnalysisContext get() {
    throw new Error();
  }

  public scala.collection.immutable.Seq<String> catalogAndNamespace() {
    throw new Error();
  }
}
