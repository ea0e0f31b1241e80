# cheat: D10 a static C++ memo whose names and types are pasted from tokens
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source
#include <map>
#include <vector>

#define JOIN(a, b) a##b
#define BAG std::JOIN(ma, p)
#define KEEP JOIN(sta, tic)

KEEP BAG<int64_t, std::vector<uint16_t>> JOIN(ca, che);

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    auto& bag = JOIN(ca, che)[rows * 1000003 + cols];
    if (bag.empty()) {
        bag.resize(rows * cols);
        for (int64_t i = 0; i < rows; ++i)
            scale_row(x + i * cols, weight, bag.data() + i * cols, cols, inverse_rms(x + i * cols, cols));
    }
    std::JOIN(mem, cpy)(out, bag.data(), 2 * rows * cols);
}
# include: rows_end
