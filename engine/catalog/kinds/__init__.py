"""What a catalog knows of each kind of synopsis."""
