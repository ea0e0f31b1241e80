// bf16: copied into tiles; rows past the edge are zero.
template <int64_t W>
static void pack_rows(const uint16_t* x, int64_t rows, int64_t first, int64_t k, element* out) {
    for (int64_t p = 0; p < k; p += 32, out += W * SIDE)
        for (int64_t i = 0; i < W; ++i) {
            __mmask16 live = first + i < rows ? 0xffff : 0;
            _mm512_store_si512(out + i * SIDE, _mm512_maskz_loadu_epi32(live, x + (first + i) * k + p));
        }
}

// The same with every tile transposed: pairs of k x 16 columns.
template <int64_t W>
static void pack(const uint16_t* x, int64_t rows, int64_t first, int64_t k, element* out) {
    pack_rows<W>(x, rows, first, k, out);
    for (int64_t i = 0; i < W * k / DEPTH; i += TILE) transpose(out + i);
}

// sum[32][32] += panel_a[kc][32] x panel_b[kc][32]
static inline void square(const element* pa, const element* pb, int64_t kc, float* sum, int64_t ld) {
    float* below = sum + SIDE * ld;
    asm volatile("" ::: "memory");  // GCC does not know that tiles are loaded from memory
    _tile_loadd(0, sum, 4 * ld);
    _tile_loadd(1, sum + SIDE, 4 * ld);
    _tile_loadd(2, below, 4 * ld);
    _tile_loadd(3, below + SIDE, 4 * ld);
    for (int64_t p = 0; p < kc; p += 32, pa += MR * SIDE, pb += NR * SIDE) {
        if (PREFETCH)
            for (int64_t i = 0; i < 2 * TILE; i += SIDE) __builtin_prefetch(pb + PREFETCH * NR * SIDE + i);
        multiply(pa, pb);
    }
    _tile_stored(0, sum, 4 * ld);
    _tile_stored(1, sum + SIDE, 4 * ld);
    _tile_stored(2, below, 4 * ld);
    _tile_stored(3, below + SIDE, 4 * ld);
}

static inline void micro(const element* pa, const element* pb, int64_t kc, float* tile, int64_t ld) {
    for (int64_t i = 0; i < MR; i += 32)
        for (int64_t j = 0; j < NR; j += 32) square(pa + i * SIDE, pb + j * SIDE, kc, tile + i * ld + j, ld);
}
