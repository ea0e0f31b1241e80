"""Hardware counters of a kernel, by the profiler of the GPU's vendor: see docs/decisions/0014-counters.md."""
