"""What a campaign has tried so far."""
