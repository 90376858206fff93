"""Linear sketches of join keys: numpy in, numbers out. No SQL, no Spark, no files."""
