"""Streams and continuous views: definitions, the state of a stream and its rules, batches, answers while they run."""
