"""Our statements in Spark SQL itself: the jar, the handler that it calls, and what needs no jar."""
