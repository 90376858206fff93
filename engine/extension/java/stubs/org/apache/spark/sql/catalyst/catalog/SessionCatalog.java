package org.apache.spark.sql.catalyst.catalog;

public class SessionCatalog {}
