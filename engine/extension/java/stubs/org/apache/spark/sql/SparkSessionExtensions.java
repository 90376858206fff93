package org.apache.spark.sql;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

public class SparkSessionExtensions {
  public void injectParser(scala.Function2<SparkSession, ParserInterface, ParserInterface> made) {}
}
