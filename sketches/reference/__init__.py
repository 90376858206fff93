"""The papers' own sketches, where a better one took their place."""
