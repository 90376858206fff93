"""Tables: what they are, their keys, weights and filters as Spark computes them, and their state."""
