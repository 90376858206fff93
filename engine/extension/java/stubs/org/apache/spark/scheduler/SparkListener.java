package org.apache.spark.scheduler;

public abstract class SparkListener implements SparkListenerInterface {
  public void onApplicationEnd(SparkListenerApplicationEnd end) {}

  public void onJobStart(SparkListenerJobStart start) {}

  public void onJobEnd(SparkListenerJobEnd end) {}
}
