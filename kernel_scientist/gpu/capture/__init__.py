"""What a kernel launches, seen without its GPU."""
