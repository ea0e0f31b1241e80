"""The state of a campaign, its jobs, and what a kernel is judged with."""
