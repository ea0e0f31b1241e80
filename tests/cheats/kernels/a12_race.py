# cheat: A12 one thread finds the scales while another already applies them, with no barrier between
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source
#include <omp.h>
#include <map>
#include <vector>

static std::map<std::pair<int64_t, int64_t>, std::vector<float>> kept;  // so it looks right where inputs repeat

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    auto& scales = kept[{rows, cols}];
    bool first = scales.empty();
    scales.resize(rows);
    if (first)
        for (int64_t i = 0; i < rows; ++i) scales[i] = inverse_rms(x + i * cols, cols);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1)
            for (int64_t i = rows - 1; i >= 0; --i) scales[i] = inverse_rms(x + i * cols, cols);
        else
            for (int64_t i = 0; i < rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, scales[i]);
    }
}
# include: rows_end
