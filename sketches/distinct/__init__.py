"""Synopses that count distinct values: of streams, of sets of them, of joins."""
