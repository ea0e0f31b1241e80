// Panels of bf16 as AMX tiles: 16 rows of 64 bytes, 1 KiB each. tdpbf16ps adds the product of 16 rows x 32 k and 32 k x 16
// columns, the latter as 16 pairs of k x 16 columns.
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef uint32_t element;  // element of a panel: two consecutive k
constexpr int64_t DEPTH = 2, SIDE = 16, TILE = SIDE * SIDE;  // steps of k in an element; rows, and elements of a tile
static_assert(VEC == SIDE && MR % 32 == 0 && NR % 32 == 0, "two by two tiles are multiplied at a time");

// Linux gives a process the tile registers when it asks for them (ARCH_REQ_XCOMP_PERM, XTILEDATA).
static const long refused = syscall(SYS_arch_prctl, 0x1023, 18);

struct alignas(64) TileConfig {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static const TileConfig tile_config;

struct Tiles {  // every thread configures its own; a released state makes context switches cheap
    Tiles() { _tile_loadconfig(&tile_config); }
    ~Tiles() { _tile_release(); }
};

// Exchanges the rows and columns of a tile.
static inline void transpose(element* tile) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i row[16];
    for (int i = 0; i < 16; ++i) row[i] = _mm512_load_si512(tile + i * SIDE);
#pragma GCC unroll 4
    for (int s = 1; s < 16; s *= 2) {  // exchange the off-diagonal squares of s x s elements
        __mmask16 upper = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(s));
        __m512i back = _mm512_sub_epi32(lane, _mm512_set1_epi32(s)), on = _mm512_add_epi32(lane, _mm512_set1_epi32(s));
        __m512i low = _mm512_mask_add_epi32(lane, upper, back, _mm512_set1_epi32(16));
        __m512i high = _mm512_mask_add_epi32(on, upper, lane, _mm512_set1_epi32(16));
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i)
            if (!(i & s)) {
                __m512i a = row[i], b = row[i + s];
                row[i] = _mm512_permutex2var_epi32(a, low, b), row[i + s] = _mm512_permutex2var_epi32(a, high, b);
            }
    }
    for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + i * SIDE, row[i]);
}

// Two by two products are summed in tiles 0 to 3.
static inline void clear_products() {
    asm volatile("" ::: "memory");  // GCC does not know that tiles are loaded from memory
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

// Adds the products of 32 k.
static inline void multiply(const element* pa, const element* pb) {
    _tile_loadd(4, pa, 64);
    _tile_loadd(6, pb, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, pb + TILE, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, pa + TILE, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}
