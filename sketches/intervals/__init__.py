"""Estimates with their intervals."""
