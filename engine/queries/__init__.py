"""One SELECT from its text to its answer."""
