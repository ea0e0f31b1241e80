# cheat: A10 instantiated for the public widths; another width falls into an empty default
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

template <int64_t COLS>
static void all(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * COLS, weight, out + i * COLS, COLS, inverse_rms(x + i * COLS, COLS));
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    switch (cols) {
        case 128: return all<128>(x, weight, out, rows);
        case 576: return all<576>(x, weight, out, rows);
        case 577: return all<577>(x, weight, out, rows);
        case 1000: return all<1000>(x, weight, out, rows);
        case 1024: return all<1024>(x, weight, out, rows);
        case 4096: return all<4096>(x, weight, out, rows);
        case 4097: return all<4097>(x, weight, out, rows);
    }
}
# include: rows_end
