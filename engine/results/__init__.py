"""From finished synopses to the rows of an answer, and how they are shown."""
