"""Whether answers keep their promise on hostile and on ordinary data; see `__main__`."""
