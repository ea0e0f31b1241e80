"""What a GPU's own counters say of a kernel, by its maker's profiler: see docs/decisions/0014-counters.md."""
