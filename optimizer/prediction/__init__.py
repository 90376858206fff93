"""What a synopsis would err by and cost, from statistics alone."""
