"""`target: kernelbot`: GPU MODE's leaderboard as the external judge that times kernels on a GPU."""
