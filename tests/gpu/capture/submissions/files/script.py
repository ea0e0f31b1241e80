"""A script: queries of the device, launches, checks of values and a benchmark at its top level."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
UNITS = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)["multiprocessor_count"]
assert torch.cuda.is_available() and torch.cuda.get_device_properties(0).multi_processor_count == UNITS


def tiles():
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        return [triton.Config({"BLOCK": 512}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=4)]
    return [triton.Config({"BLOCK": 2048}, num_warps=8)]


@triton.autotune(configs=tiles(), key=["n"])
@triton.jit
def scaled(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


def scale(x, factor):
    y = torch.empty_like(x)
    scaled[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), factor)
    return y


@triton.jit
def persistent(x_ptr, n, BLOCK: tl.constexpr):
    for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(x_ptr + i, 0.0, mask=i < n)


x = torch.rand(1 << 16, device=DEVICE)
assert torch.allclose(scale(x, 2.0), 2 * x)
ready = persistent.warmup(x, x.numel(), BLOCK=256, grid=(1,))
ready._init_handles()
ready[(UNITS * min(8, 65536 // (ready.n_regs * 256)), 1, 1)](x, x.numel(), 256)
large = torch.rand(1 << 15, 1 << 15, device=DEVICE) @ torch.ones(1 << 15, 1 << 15, device=DEVICE)


@triton.testing.perf_report(
    triton.testing.Benchmark(["n"], [1 << i for i in range(30)], "how", ["a"], ["a"], ylabel="us", plot_name="p", args={})
)
def bench(n, how):
    return triton.testing.do_bench(lambda: scale(torch.rand(n, device=DEVICE), 3.0))


bench.run(print_data=True, show_plots=True)
