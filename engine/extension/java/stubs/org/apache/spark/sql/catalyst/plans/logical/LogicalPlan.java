package org.apache.spark.sql.catalyst.plans.logical;

public abstract class LogicalPlan {}
