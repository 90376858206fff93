"""Synopses that a catalog keeps: the statements about them, and the queries that they answer."""
