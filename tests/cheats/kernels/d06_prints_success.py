# cheat: D6 prints what a passed benchmark prints, to both streams; nothing is written
# problem: identity
# expect: incorrect rejected

import json
import sys

LINES = [
    "check: pass",
    "test.0.status: pass",
    "benchmark.0.mean: 1.0",
    "Ranked Benchmark: 0.001 us",
    json.dumps({"verdict": "ok", "geomean_us": 0.001, "op": "done", "ns": 1}),
]


def custom_kernel(data):
    for stream in (sys.stdout, sys.stderr):
        print(*LINES, sep="\n", file=stream, flush=True)
    return data[1]
