"""Coordinated samples of keys, and joins of them."""
