"""First light on a GPU, in steps: `python -m benchmarks.first_light` (`__main__`)."""
