"""Runs plans on Spark: sessions, key encoding, one pass per table, answers. The only importer of pyspark."""
