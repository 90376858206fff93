"""Measurements: speed of the kernels, error of the sketches against space, the studies of the papers."""
