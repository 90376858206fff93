"""Hash families, and keys as 64-bit integers."""
