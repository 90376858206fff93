"""Join graphs to plans: which synopsis each edge gets and how large it is; no SQL text, no counters."""
