"""The kernels that a campaign has tried."""
