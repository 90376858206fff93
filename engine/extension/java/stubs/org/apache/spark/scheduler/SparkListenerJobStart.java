package org.apache.spark.scheduler;

public class SparkListenerJobStart {
  public int jobId() {
    throw new Error();
  }

  public java.util.Properties properties() {
    throw new Error();
  }
}
