"""Linear sketches of join keys, and the size of joins from them."""
