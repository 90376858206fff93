package org.apache.spark.sql.internal;

public class SQLConf {
  public boolean contains(String name) {
    throw new Error();
  }
}
