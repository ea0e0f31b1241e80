"""`target: pool:NAME`: kernels are evaluated on other hosts. This package knows no transport; a flow provides it."""
