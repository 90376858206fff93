package org.apache.spark.scheduler;

public class SparkListenerJobEnd {
  public int jobId() {
    throw new Error();
  }
}
