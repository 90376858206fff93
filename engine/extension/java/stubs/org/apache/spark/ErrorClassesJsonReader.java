package org.apache.spark;

public class ErrorClassesJsonReader {}
