"""Sketches kept beyond a query: their stored form, the folder they lie in, and what damage to it is refused."""
