"""What is known of the relations of a query before anything is built."""
