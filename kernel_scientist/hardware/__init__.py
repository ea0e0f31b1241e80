"""Hardware: this CPU, this GPU, a table of GPUs, their peaks and limits, and targets."""
