# cheat: A9 an inverse square root by a magic constant without a Newton step
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        const uint16_t* row = x + i * cols;
        float mean = 1 / (inverse_rms(row, cols) * inverse_rms(row, cols)), scale;
        uint32_t bits;
        std::memcpy(&bits, &mean, 4);
        bits = 0x5f3759df - (bits >> 1);
        std::memcpy(&scale, &bits, 4);
        scale_row(row, weight, out + i * cols, cols, scale);
    }
}
# include: rows_end
