"""Plans on Arrow tables in memory: the same keys, weights, sketches and samples as Spark's, without a JVM."""
