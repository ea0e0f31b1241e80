"""What a source is, how it is compiled, what its object code tells."""
