# honest: a thread_local row buffer in each OpenMP thread
# problem: rmsnorm
# expect: ok

# include: rows_source
#include <vector>

static thread_local std::vector<float> row_buffer;

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) {
        row_buffer.resize(cols);
        float sum = 0;
        for (int64_t j = 0; j < cols; ++j) row_buffer[j] = from_bf16(x[i * cols + j]);
        for (int64_t j = 0; j < cols; ++j) sum += row_buffer[j] * row_buffer[j];
        float scale = 1 / std::sqrt(sum / cols + 1e-6f);
        for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = to_bf16(row_buffer[j] * scale * weight[j]);
    }
}
# include: rows_end
