"""`target: kernelbot`: GPU MODE's leaderboard checks and times kernels on a GPU of its own."""
