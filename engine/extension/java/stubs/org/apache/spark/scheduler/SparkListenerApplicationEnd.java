package org.apache.spark.scheduler;

public class SparkListenerApplicationEnd {}
