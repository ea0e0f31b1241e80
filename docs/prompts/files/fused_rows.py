import torch
from kernel_scientist import load

TUNABLES = {"THREADS": 0}  # 0: as many as the system grants
CHOICES = {"THREADS": [0, 1, 2]}

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <omp.h>

static inline float exponential(float x) {  // relative error 2e-7
    x = x < -87.0f ? -87.0f : x > 87.0f ? 87.0f : x;
    float n = std::nearbyint(x * 1.44269504f), r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.3888889e-3f;
    p = p * r + 8.3333333e-3f;
    p = p * r + 4.1666667e-2f;
    p = p * r + 1.6666667e-1f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    int32_t bits;
    std::memcpy(&bits, &p, 4);
    bits += int32_t(n) << 23;
    std::memcpy(&p, &bits, 4);
    return p;
}

extern "C" void finish(float* y, const float* x, const float* weight, const float* bias, int64_t rows, int64_t n,
                       double eps) {
    #pragma omp parallel for num_threads(THREADS ? THREADS : omp_get_max_threads())
    for (int64_t i = 0; i < rows; ++i) {
        float *row = y + i * n, sum = 0, squares = 0;
        #pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < n; ++j) {
            float v = row[j], u = 0.7978845608f * (v + 0.044715f * v * v * v);
            row[j] = v / (1.0f + exponential(-2.0f * u));  // tanh(u) = 2 sigmoid(2 u) - 1
            sum += row[j];
        }
        float mean = sum / n;
        #pragma omp simd reduction(+ : squares)
        for (int64_t j = 0; j < n; ++j) squares += (row[j] - mean) * (row[j] - mean);
        float scale = 1.0f / std::sqrt(squares / n + float(eps));
        #pragma omp simd
        for (int64_t j = 0; j < n; ++j) row[j] = x[i * n + j] + (row[j] - mean) * scale * weight[j] + bias[j];
    }
}
"""
kernel = load(SOURCE, defines=TUNABLES, flags=["-fno-math-errno", "-fno-trapping-math"])


def custom_kernel(data):
    x, p, (features, eps) = data
    y = torch.nn.functional.linear(x, p["linear.weight"], p["linear.bias"])
    kernel.finish(y, x, p["norm.weight"], p["norm.bias"], x.numel() // features, features, eps)
    return y
