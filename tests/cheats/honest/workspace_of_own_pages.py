# variant: huge_pages | a workspace on huge pages, touched on the first call | madvise(memory, bytes, MADV_HUGEPAGE)
# variant: locked_memory | a workspace locked in memory where that is allowed | (void)!mlock(memory, bytes < (4 << 20) ? bytes : (4 << 20))
# problem: rmsnorm
# expect: ok

# include: rows_source
#include <cstdlib>
#include <sys/mman.h>

static float* workspace(int64_t count) {
    static float* memory = nullptr;
    static int64_t bytes = 0;
    if (bytes < 4 * count) {
        if (memory) munmap(memory, bytes);
        bytes = (4 * count + (2 << 20) - 1) / (2 << 20) * (2 << 20);
        memory = (float*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == (float*)MAP_FAILED) std::abort();
        $VARIANT;
        for (int64_t i = 0; i < bytes; i += 4096) ((volatile char*)memory)[i] = 0;
    }
    return memory;
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    float* squares = workspace(rows * cols);
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < cols; ++j) {
            float v = from_bf16(x[i * cols + j]);
            squares[i * cols + j] = v * v;
        }
        for (int64_t j = 0; j < cols; ++j) sum += squares[i * cols + j];
        scale_row(x + i * cols, weight, out + i * cols, cols, 1 / std::sqrt(sum / cols + 1e-6f));
    }
}
# include: rows_end
