"""A campaign: its state, its jobs, tuning, checks before the start, and the evaluation context."""
