"""Code that runs inside a worker, in the kernel's process. The evaluator trusts none of its messages."""
