"""On the path of confined processes: the package `kernel_scientist`, and nothing else."""
