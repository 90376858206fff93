"""Grammars of the statements and clauses that Spark SQL does not have, one language per file."""
