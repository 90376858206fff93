package org.apache.spark;

public class SparkContext {
  public SparkConf getConf() {
    throw new Error();
  }

  public void addSparkListener(org.apache.spark.scheduler.SparkListenerInterface listener) {}

  public boolean isStopped() {
    throw new Error();
  }

  public void cancelJob(int job) {}
}
