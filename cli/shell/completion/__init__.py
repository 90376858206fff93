"""Completion by context: a pure function of the text, the cursor and the names that there are."""
