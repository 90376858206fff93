"""Many queries at once: sharing, partitioning, and allocating space."""
