package org.apache.spark.sql.internal;

public class SQLConf {
  public scala.collection.immutable.Map<String, String> getAllConfs() {
    throw new Error();
  }

  public boolean ansiEnabled() {
    throw new Error();
  }

  public String sessionLocalTimeZone() {
    throw new Error();
  }

  public boolean contains(String name) {
    throw new Error();
  }
}
