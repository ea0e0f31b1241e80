"""Which kernel comes next."""
