"""The ways to answer a query, with predicted error, bytes and cost, and the one to take."""
