"""Where a kernel's time goes: a GPU's counters by its vendor's profiler, samples on a CPU by perf.

See docs/decisions/0014-counters.md.
"""
