"""Attempts to break SkimQL, counted: python -m benchmarks.faults."""
