"""What runs inside a worker, in the same process as the kernel. Nothing it says is trusted."""
