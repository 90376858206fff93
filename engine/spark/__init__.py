"""Spark itself: sessions of ours, jobs, and what workers need."""
