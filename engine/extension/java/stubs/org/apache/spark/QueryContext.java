package org.apache.spark;

public interface QueryContext {}
