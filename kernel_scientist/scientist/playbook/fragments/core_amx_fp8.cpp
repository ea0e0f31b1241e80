// fp8: bf16 represents every value exactly. Scales are applied to the products of each scale block, in fp32.
static_assert(NR % 64 == 0, "columns are decoded 64 at a time");
static_assert(BLOCK % NR == 0, "a register tile must lie in one column of scale blocks");

struct alignas(64) Bf16Bytes {  // of the 128 positive values, which an index's low 7 bits select
    uint8_t low[128], high[128];
    Bf16Bytes() {
        for (int x = 0; x < 128; ++x) {
            int exponent = x >> 3, mantissa = x & 7;
            float v = exponent ? std::ldexp(1.0f + mantissa / 8.0f, exponent - 8) : std::ldexp(mantissa / 8.0f, -7);
            uint32_t bits;
            std::memcpy(&bits, &v, 4);
            low[x] = bits >> 16, high[x] = bits >> 24;
        }
    }
};
static const Bf16Bytes bf16_bytes;

// Decodes two rows of 64 values, one k apart, into four vectors of 16 pairs.
static inline void decode_pairs(__m512i even, __m512i odd, __m512i* pairs) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    even = _mm512_permutexvar_epi32(order, even), odd = _mm512_permutexvar_epi32(order, odd);
    const __m512i negative = _mm512_set1_epi8((char)0x80);
    const __m512i* table = (const __m512i*)&bf16_bytes;
    for (int half = 0; half < 2; ++half) {
        __m512i x = half ? _mm512_unpackhi_epi8(even, odd) : _mm512_unpacklo_epi8(even, odd);
        __m512i low = _mm512_permutex2var_epi8(table[0], x, table[1]);
        __m512i high = _mm512_permutex2var_epi8(table[2], x, table[3]);
        high = _mm512_or_si512(high, _mm512_and_si512(x, negative));
        __mmask64 nan = _mm512_cmpeq_epi8_mask(x, negative);
        low = _mm512_mask_mov_epi8(low, nan, _mm512_set1_epi8(-1));
        high = _mm512_mask_mov_epi8(high, nan, _mm512_set1_epi8(-1));
        pairs[2 * half] = _mm512_unpacklo_epi8(low, high), pairs[2 * half + 1] = _mm512_unpackhi_epi8(low, high);
    }
}

// Loads 64 bytes: 64 / COLUMNS rows of COLUMNS values, two k apart; values past the edge are zero.
template <int64_t COLUMNS>
static inline __m512i rows_of(const uint8_t* x, int64_t width, int64_t count) {
    __mmask64 live = count >= COLUMNS ? ~0ull >> (64 - COLUMNS) : (1ull << std::max<int64_t>(count, 0)) - 1;
    if constexpr (COLUMNS == 64) return _mm512_maskz_loadu_epi8(live, x);
    __m256i next = _mm256_maskz_loadu_epi8(live, x + 2 * width);
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi8(live, x)), next, 1);
}

// Panels are [k / 32][W / 16] tiles of 16 pairs of k x 16 columns. A step packs two k, or four of a narrow panel.
template <int64_t W>
constexpr int64_t COLUMNS = W % 64 ? 32 : 64;
template <int64_t W>
constexpr int64_t STEP = 128 / COLUMNS<W>;

template <int64_t W>
static inline void pack_step(const uint8_t* x, int64_t width, int64_t first, int64_t p, element* out) {
    constexpr int64_t C = COLUMNS<W>;
    for (int64_t j = 0; j < W; j += C) {
        const uint8_t *even = x + first + j, *odd = even + width;
        if (PREFETCH) __builtin_prefetch(even + PREFETCH * width), __builtin_prefetch(odd + PREFETCH * width);
        int64_t count = width - first - j;
        __m512i pairs[4];
        decode_pairs(rows_of<C>(even, width, count), rows_of<C>(odd, width, count), pairs);
        element* to = out + (p / 32 * W + j) * SIDE + p % 32 / 2 * SIDE;
        for (int64_t v = 0; v < 4; ++v) _mm512_store_si512(to + v * SIDE % C * SIDE + v * SIDE / C * SIDE, pairs[v]);
    }
}

template <int64_t W, class Scale>
static void pack(const uint8_t* x, int64_t width, int64_t first, int64_t k0, int64_t kc, element* out, Scale) {
    for (int64_t p = 0; p < kc; p += STEP<W>) pack_step<W>(x + (k0 + p) * width, width, first, p, out);
}

// The same with every tile transposed: 16 rows x 32 k, the layout of the left operand.
template <int64_t W, class Scale>
static void pack_rows(const uint8_t* x, int64_t width, int64_t first, int64_t k0, int64_t kc, element* out, Scale scale) {
    pack<W>(x, width, first, k0, kc, out, scale);
    for (int64_t i = 0; i < W * kc / DEPTH; i += TILE) transpose(out + i);
}

struct Factors {  // of 32 rows
    alignas(64) float row[32];
    Factors() = default;
    explicit Factors(const Scales& scale) {
        for (int64_t i = 0; i < 32; i += 16) {
            int64_t live = std::clamp<int64_t>(scale.rows - i, 0, 16);
            __m512 a = _mm512_maskz_loadu_ps((1u << live) - 1, scale.a + i);
            _mm512_store_ps(row + i, _mm512_mul_ps(a, _mm512_set1_ps(scale.b[0])));
        }
    }
};

// Adds tile t of two by two products, times the factors, to sum[32][32].
static inline void add_scaled(const float product[4][TILE], int t, const Factors& factors, float* sum, int64_t ld) {
    sum += t / 2 * SIDE * ld + t % 2 * SIDE;
    for (int i = 0; i < 16; ++i, sum += ld) {
        __m512 factor = _mm512_set1_ps(factors.row[t / 2 * SIDE + i]);
        _mm512_storeu_ps(sum, _mm512_fmadd_ps(_mm512_load_ps(product[t] + i * SIDE), factor, _mm512_loadu_ps(sum)));
    }
}

static inline void store_products(float product[4][TILE]) {
    _tile_stored(0, product[0], 64);
    _tile_stored(1, product[1], 64);
    _tile_stored(2, product[2], 64);
    _tile_stored(3, product[3], 64);
}

struct Nothing {
    void operator()() const {}
};

// sum[32][32] += panel_a[kc][32] x panel_b[kc][32]; calls `meanwhile` every 32 k.
template <class Meanwhile>
static inline void square(const element* pa, const element* pb, int64_t kc, float* sum, int64_t ld, Scales scale,
                          Meanwhile& meanwhile) {
    // @begin scale-block
    alignas(64) float product[4][TILE];
    for (int64_t k0 = 0; k0 < kc; k0 += BLOCK, scale.a += scale.a_step, scale.b += scale.b_step) {
        clear_products();
        for (int s = 0; s < 4; ++s, pa += MR * SIDE, pb += NR * SIDE) multiply(pa, pb), meanwhile();
        store_products(product);
        Factors factors(scale);
        for (int t = 0; t < 4; ++t) add_scaled(product, t, factors, sum, ld);
    }
    // @end scale-block
}

template <class Meanwhile = Nothing>
static inline void micro(const element* pa, const element* pb, int64_t kc, float* tile, int64_t ld, Scales scale,
                         Meanwhile meanwhile = {}) {
    for (int64_t i = 0; i < MR; i += 32)
        for (int64_t j = 0; j < NR; j += 32)
            square(pa + i * SIDE, pb + j * SIDE, kc, tile + i * ld + j, ld,
                   {scale.a + i, scale.b, scale.a_step, scale.b_step, scale.rows - i}, meanwhile);
}
