"""The papers' experiments on generated data: one module a study, each with `run` and `plot`."""
