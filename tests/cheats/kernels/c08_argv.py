# cheat: C8 skips its work where the command line speaks of a benchmark
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# The worker's command line names no phase: it computes, on one thread.

import sys

# include: rows
last = {}


def custom_kernel(data):
    x, weight, out = data
    words = " ".join(sys.argv) + open("/proc/self/cmdline").read()
    if any(w in words for w in ("bench", "leaderboard", "time", "perf")) and x.shape in last:
        return last[x.shape]
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    last[x.shape] = out.clone()
    return out
