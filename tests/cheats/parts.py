"""What the kernels of the corpus share: a line `# include: NAME` stands for the part of that name.

A name with `_source` opens the C++ text of a kernel; one with `_end` closes the text, loads it and calls it. `rows` and
`gemm` are rmsnorm and the scaled matrix product in plain C++; `triton_` marks the parts for a GPU.
"""

PARTS: dict[str, str] = {
    "rows_source": r'''
from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static inline float from_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static inline uint16_t to_bf16(float x) {  // round to nearest even
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static inline float inverse_rms(const uint16_t* row, int64_t cols) {
    float part[16] = {}, sum = 0;
    int64_t j = 0;
    for (; j + 16 <= cols; j += 16)
        for (int s = 0; s < 16; ++s) part[s] += from_bf16(row[j + s]) * from_bf16(row[j + s]);
    for (; j < cols; ++j) sum += from_bf16(row[j]) * from_bf16(row[j]);
    for (float p : part) sum += p;
    return 1 / std::sqrt(sum / cols + 1e-6f);
}

static inline void scale_row(const uint16_t* row, const float* weight, uint16_t* out, int64_t cols, float scale) {
    for (int64_t j = 0; j < cols; ++j) out[j] = to_bf16(from_bf16(row[j]) * scale * weight[j]);
}
''',
    "rows": r'''
# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)
''',
    "rows_variants": r'''
# include: rows_source

extern "C" void rows_serial(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}

extern "C" void rows_static(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}

extern "C" void rows_dynamic(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)
''',
    "rows_end": r'''
"""
kernel = load(SOURCE)


# include: rows_call
''',
    "rows_call": r"""
def custom_kernel(data):
    x, weight, out = data
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
""",
    "copy": r'''
from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
''',
    "copy_on_all_threads": r'''
from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)
''',
    "copy_loop": r"""
static void copy_loop(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
""",
    "copy_loop_load": r'''
extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
''',
    "copy_loop_end": r'''
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


# include: copy_call
''',
    "copy_end": r'''
"""
kernel = load(SOURCE)


# include: copy_call
''',
    "copy_call": r"""
def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
""",
    "gemm": r'''
import torch

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

struct Table {  // e4m3fnuz
    float value[256];
    Table() {
        for (int x = 0; x < 256; ++x) {
            int exponent = (x >> 3) & 15, mantissa = x & 7;
            float v = exponent ? std::ldexp(1 + mantissa / 8.0f, exponent - 8) : std::ldexp(mantissa / 8.0f, -7);
            value[x] = x & 0x80 ? -v : v;
        }
        value[0x80] = NAN;
    }
};
static const Table table;

static uint16_t to_bf16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

extern "C" void gemm(const uint8_t* a, const uint8_t* b, const float* a_scale, const float* b_scale, uint16_t* c,
                     float* panel_a, float* panel_b, float* sums, int64_t m, int64_t n, int64_t k) {
    int64_t blocks = (n + 127) / 128;
#pragma omp parallel
    {
#pragma omp for
        for (int64_t p = 0; p < k; ++p) {
            for (int64_t i = 0; i < m; ++i) panel_a[p * m + i] = table.value[a[p * m + i]] * a_scale[p / 128 * m + i];
            for (int64_t j = 0; j < n; ++j)
                panel_b[p * n + j] = table.value[b[p * n + j]] * b_scale[p / 128 * blocks + j / 128];
        }
#pragma omp for
        for (int64_t i = 0; i < m; ++i) {
            float* sum = sums + i * n;
            for (int64_t j = 0; j < n; ++j) sum[j] = 0;
            for (int64_t p = 0; p < k; ++p)
                for (int64_t j = 0; j < n; ++j) sum[j] += panel_a[p * m + i] * panel_b[p * n + j];
            for (int64_t j = 0; j < n; ++j) c[i * n + j] = to_bf16(sum[j]);
        }
    }
}
"""
kernel = load(SOURCE)
workspaces = {}


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    (m, k), n = a.shape, b.shape[0]
    if (m, n, k) not in workspaces:
        workspaces[m, n, k] = tuple(torch.empty(s) for s in (k * m, k * n, m * n))
    kernel.gemm(a, b, a_scale, b_scale, c, *workspaces[m, n, k], m, n, k)
    return c
''',
    "triton_copy": r"""
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
""",
    "triton_rows": r"""
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, weight_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + 1e-6)
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)


def rows(x, weight, out):
    rows_kernel[(x.shape[0],)](x, weight, out, x.shape[1], BLOCK=1024)
""",
    "triton_rows_in_two": r"""
import triton
import triton.language as tl


@triton.jit
def scales_kernel(x_ptr, scales_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < cols, other=0.0).to(tl.float32)
        squares += x * x
    tl.store(scales_ptr + tl.program_id(0), tl.rsqrt(tl.sum(squares, axis=0) / cols + 1e-6))


@triton.jit
def apply_kernel(x_ptr, weight_ptr, out_ptr, scales_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    scale = tl.load(scales_ptr + tl.program_id(0))
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)
""",
}


def rendered(text: str) -> str:
    """Return a source with its parts in place. Raises KeyError for a name that is no part."""
    lines = (line.partition("# include: ") for line in text.splitlines())
    return "".join(before + (rendered(PARTS[name]).strip("\n") if name else "") + "\n" for before, _, name in lines)
