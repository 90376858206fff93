"""Carrying out a plan: scans, exact messages, samples, groups; what each Spark job is made of."""
