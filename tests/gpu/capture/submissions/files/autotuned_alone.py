"""Kernels whose autotuner leaves out configurations, or lists one that no workgroup could hold."""

import triton
import triton.language as tl


def keep(configs, named_args, **_):
    return [config for config in configs if config.kwargs["BLOCK"] <= named_args["n"] // 2]


@triton.autotune(
    configs=[triton.Config({"BLOCK": 4096}, num_warps=8), triton.Config({"BLOCK": 256}, num_warps=2)],
    key=["n"],
    prune_configs_by={"early_config_prune": keep},
)
@triton.jit
def pruned(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.autotune(
    configs=[triton.Config({"M": 256, "K": 128}, num_warps=8), triton.Config({"M": 32, "K": 32}, num_warps=4)],
    key=["k"],
)
@triton.jit
def large(a, b, c, k, M: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, M)
    total = tl.zeros((M, M), tl.float32)
    for start in range(0, k, K):
        j = start + tl.arange(0, K)
        total += tl.dot(tl.load(a + i[:, None] * k + j[None, :]), tl.load(b + j[:, None] * M + i[None, :]))
    tl.store(c + i[:, None] * M + i[None, :], total)
