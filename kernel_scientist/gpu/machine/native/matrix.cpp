// Rows of matrix instructions (MFMA, SMFMAC) of CDNA3, and the wider shapes that gfx950 adds. D[i][j] = C[i][j] + sum over k of A[i][k] * B[k][j], for each block.
//
// Layouts: AMD, "AMD Matrix Instruction Calculator". The device's order of summation within an instruction is not
// documented: products are added one by one in fp32, in ascending order of k, or in descending order where the launch
// asks for it.
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "lanes.h"

namespace machine {

// A number of 8 bits with `MANTISSA` bits behind the point, without infinities and -0 (e4m3fnuz, e5m2fnuz). Without a
// table and without branches, so that the compiler converts many at a time. `LEAST`: exponent of fp32's for exponent 0.
template <int MANTISSA, u32 LEAST> static f32 of_8_bits(u32 code) {
    const u32 magnitude = code & 127, least = LEAST << 23;
    const f32 normal = as_f32((magnitude << (23 - MANTISSA)) + least), denormal = 2 * (normal - as_f32(least));
    const u32 bits = std::bit_cast<u32>(magnitude >> MANTISSA ? normal : denormal) | (code & 128) << 24;
    return as_f32(code == 128 ? 0x7fc00000u : bits);
}

// Elements of a source: how many lie in a word, how they become numbers, and whether the product of two is exact in fp32.
struct AsF32 {
    static constexpr int PER_WORD = 1;
    static constexpr bool EXACT = false;
    static f32 at(const u32* p, int e, int l) { return as_f32(p[e * LANES + l]); }
};
struct AsXf32 {  // the device reads 19 bits of each
    static constexpr int PER_WORD = 1;
    static constexpr bool EXACT = false;  // it may be smaller than fp32's numbers
    static f32 at(const u32* p, int e, int l) { return as_f32(p[e * LANES + l] & 0xffffe000u); }
};
struct AsF16 {
    static constexpr int PER_WORD = 2;
    static constexpr bool EXACT = true;
    static f32 at(const u32* p, int e, int l) { return f32(as_f16(u16(p[e / 2 * LANES + l] >> 16 * (e & 1)))); }
};
struct AsBf16 {
    static constexpr int PER_WORD = 2;
    static constexpr bool EXACT = false;
    static f32 at(const u32* p, int e, int l) { return from_bf16(u16(p[e / 2 * LANES + l] >> 16 * (e & 1))); }
};
struct AsFp8 {
    static constexpr int PER_WORD = 4;
    static constexpr bool EXACT = true;
    static f32 at(const u32* p, int e, int l) { return of_8_bits<3, 119>(p[e / 4 * LANES + l] >> 8 * (e & 3) & 255); }
};
struct AsBf8 {
    static constexpr int PER_WORD = 4;
    static constexpr bool EXACT = true;
    static f32 at(const u32* p, int e, int l) { return of_8_bits<2, 111>(p[e / 4 * LANES + l] >> 8 * (e & 3) & 255); }
};
struct AsI8 {
    static constexpr int PER_WORD = 4;
    static constexpr bool EXACT = false;
    static i32 at(const u32* p, int e, int l) { return i8(p[e / 4 * LANES + l] >> 8 * (e & 3)); }
};

// The lane whose part of B a lane takes (BLGP): its own, that of one half, that 16 lanes on, or that of one quarter.
static int moved(int lane, int pattern) {
    if (pattern < 4) return pattern == 0 ? lane : pattern == 3 ? (lane + 16) & 63 : (lane & 31) | (pattern == 2 ? 32 : 0);
    return (lane & 15) | (pattern - 4) * 16;
}
// Lane l of a source holds row or column l % SIZE, and PER consecutive values of k or those of one block.
template <class As, class T, int SIZE, int K, int BLOCKS> static void gather(T* to, const u32* from, int pattern) {
    constexpr int GROUPS = LANES / SIZE, PER = K * BLOCKS / GROUPS, WORDS = (PER + As::PER_WORD - 1) / As::PER_WORD;
    alignas(64) u32 others[WORDS * LANES];
    if (pattern) {
        for (int n = 0; n < WORDS * LANES; ++n) others[n] = from[n / LANES * LANES + moved(n % LANES, pattern)];
        from = others;
    }
    for (int e = 0; e < PER; ++e)
        for (int group = 0; group < GROUPS; ++group) {
            const int row = BLOCKS > 1 ? group * K + e : group * PER + e;
            for (int r = 0; r < SIZE; ++r) to[row * SIZE + r] = T(As::at(from, e, group * SIZE + r));
        }
}
// One block of A serves 2^CBSZ blocks: the one that ABID numbers within them.
template <class T> static void shared(T* a, int elements, int blocks, int cbsz, int abid) {
    for (int first = 0; first < blocks; first += 1 << cbsz) {
        const std::vector<T> one(a + (first + abid) * elements, a + (first + abid + 1) * elements);
        for (int block = first; block < first + (1 << cbsz); ++block) std::copy(one.begin(), one.end(), a + block * elements);
    }
}
// Of four values of k in a row a sparse A has two; a register has two bits for the place of each. ABID chooses which part
// of the register, unless CBSZ is set. `chosen`: where there is a value; with the others B's are not multiplied.
template <class As, class T> static void gather_sparse(T* to, bool* chosen, const u32* from, const u32* index, int size, int k, const Instruction& in) {
    const int per = k * size / LANES, bits = per, shift = in.cbsz ? 0 : bits * in.abid % 32;
    std::fill(to, to + k * size, T(0));
    for (int l = 0; l < LANES; ++l)
        for (int e = 0; e < per / 2; ++e) {
            const int place = l / size * per + e / 2 * 4 + int(index[l] >> (shift + 2 * e) & 3);
            to[place * size + l % size] += T(As::at(from, e, l)), chosen[place * size + l % size] = true;
        }
}

// Where element (i, j) of a block of the result lies: register and lane. `groups`: 64 / n.
struct Place {
    int reg, lane;
};
template <int M, int N, int BLOCKS> static Place placed(int block, int i, int j) {
    if constexpr (M == 4) return {i, block * 4 + j};
    constexpr int rows = M == 32 ? 2 : 4;  // groups of lanes, of four rows each
    return {block * (M * N / LANES) + i / (4 * rows) * 4 + i % 4, i / 4 % rows * N + j};
}

#if defined(__AVX512F__)
constexpr int FLOATS = 16;
#elif defined(__AVX__)
constexpr int FLOATS = 8;
#else
constexpr int FLOATS = 4;
#endif
typedef f32 Vector __attribute__((vector_size(4 * FLOATS)));

// a * b + c. `EXACT`: the product is exact, so rounding once is the same as rounding twice.
template <bool EXACT> static Vector sum_of(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
    if constexpr (EXACT) return Vector(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__FMA__)
    if constexpr (EXACT) return Vector(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#endif
    return c + a * b;
}

// One block of the result, of at least 16 columns, in fp32: x holds A by columns, y holds B by rows. Elements of `from` and
// `to` lie as in registers; each is read before it is written.
template <bool EXACT, int M, int N, int K, int BLOCKS>
static void block_of(int block, const f32* x, const f32* y, const u32* from, f32 constant, u32* to, bool descending) {
    // as many sums as the processor's registers hold
    constexpr int columns = FLOATS == 16 ? N : 16, wide = columns / FLOATS, high = FLOATS == 16 ? 8 : 4;
    for (int i = 0; i < M; i += high)
        for (int j = 0; j < N; j += columns) {
            Vector sum[high][wide];
            int at[high];
            for (int r = 0; r < high; ++r) {
                const Place p = placed<M, N, BLOCKS>(block, i + r, j);
                at[r] = p.reg * LANES + p.lane;
                for (int w = 0; w < wide; ++w)
                    if (from) std::memcpy(&sum[r][w], from + at[r] + FLOATS * w, sizeof(Vector));
                    else sum[r][w] = constant - Vector{};  // -0 stays -0
            }
            for (int step = 0; step < K; ++step) {
                const int k = descending ? K - 1 - step : step;
                Vector row[wide];
                for (int w = 0; w < wide; ++w) std::memcpy(&row[w], y + k * N + j + FLOATS * w, sizeof(Vector));
                for (int r = 0; r < high; ++r) {
                    const Vector factor = x[k * M + i + r] - Vector{};
                    for (int w = 0; w < wide; ++w) sum[r][w] = sum_of<EXACT>(factor, row[w], sum[r][w]);
                }
            }
            for (int r = 0; r < high; ++r)
                for (int w = 0; w < wide; ++w) std::memcpy(to + at[r] + FLOATS * w, &sum[r][w], sizeof(Vector));
        }
}

// Whether all elements of A and B are +0, as where a launch is counted without inputs. Then only +0 is added.
template <class A, class B, int M, int N, int K, int BLOCKS> static bool all_zero(const u32* a, const u32* b) {
    u32 any = 0;
    for (int n = 0; n < K * M * BLOCKS / A::PER_WORD; ++n) any |= a[n];
    for (int n = 0; n < K * N * BLOCKS / B::PER_WORD; ++n) any |= b[n];
    return !any;
}

// `SPARSE`: the addend is the destination, and the last operand says where the values of A belong.
template <class A, class B, class T, int M, int N, int K, int BLOCKS, bool SPARSE = false>
static void multiply(Wave& wave, const Instruction& in) {
    // the ISA document defines no more blocks than there are, nor a block beyond those that share
    if (!SPARSE && in.cbsz && (1 << in.cbsz > BLOCKS || in.abid >> in.cbsz)) return wave.group->launch.report(wave, in, Fault::refused, 0, 0);
    const Operand& addend = in.operand[SPARSE ? 0 : 3];
    const u32* from = addend.kind == Kind::vector ? wave.lanes(addend.index) : nullptr;
    const u32 constant = from ? 0 : scalar<u32>(wave, addend);
    u32* to = wave.lanes(in.operand[0].index);  // the mask of active lanes is ignored by these instructions
    if (!SPARSE && all_zero<A, B, M, N, K, BLOCKS>(wave.lanes(in.operand[1].index), wave.lanes(in.operand[2].index))) {
        constexpr int count = BLOCKS * M * N;
        if (from) std::memmove(to, from, sizeof(u32) * count);  // they may overlap
        else std::fill_n(to, count, constant);
        for (int n = 0; n < count; ++n) to[n] = std::bit_cast<u32>(std::bit_cast<T>(to[n]) + T(0));
        return;
    }
    alignas(64) T a[BLOCKS * K * M], b[BLOCKS * K * N], c[BLOCKS * M * N];
    bool chosen[SPARSE ? K * M : 1] = {};
    if constexpr (SPARSE) gather_sparse<A>(a, chosen, wave.lanes(in.operand[1].index), wave.lanes(in.operand[3].index), M, K, in);
    else gather<A, T, M, K, BLOCKS>(a, wave.lanes(in.operand[1].index), 0);
    if (!SPARSE && in.cbsz) shared(a, K * M, BLOCKS, in.cbsz, in.abid);
    gather<B, T, N, K, BLOCKS>(b, wave.lanes(in.operand[2].index), in.blgp);
    const bool descending = wave.group->launch.order.matrix_order;
    if constexpr (std::is_same_v<T, f32> && N >= 16 && !SPARSE) {
        const std::ptrdiff_t apart = from ? from - to : 0;
        if (apart && std::abs(apart) < BLOCKS * M * N) {  // they overlap in part
            std::memcpy(c, from, sizeof c);
            from = reinterpret_cast<const u32*>(c);
        }
        for (int block = 0; block < BLOCKS; ++block)
            block_of<A::EXACT && B::EXACT, M, N, K, BLOCKS>(block, a + block * K * M, b + block * K * N, from, as_f32(constant), to, descending);
        return;
    }
    for (int block = 0; block < BLOCKS; ++block)
        for (int i = 0; i < M; ++i)
            for (int j = 0; j < N; ++j) {
                const Place p = placed<M, N, BLOCKS>(block, i, j);
                c[(block * M + i) * N + j] = std::bit_cast<T>(from ? from[p.reg * LANES + p.lane] : constant);
            }
    for (int block = 0; block < BLOCKS; ++block)
        for (int step = 0; step < K; ++step) {
            const int k = descending ? K - 1 - step : step;
            const T *x = a + (block * K + k) * M, *y = b + (block * K + k) * N;
            T* z = c + block * M * N;
            for (int i = 0; i < M; ++i)
                for (int j = 0; j < N; ++j) {
                    if (SPARSE && !chosen[k * M + i]) continue;
                    if constexpr (std::is_same_v<T, f32>) z[i * N + j] = __builtin_fmaf(x[i], y[j], z[i * N + j]);
                    else z[i * N + j] = T(u32(z[i * N + j]) + u32(x[i]) * u32(y[j]));
                }
        }
    for (int block = 0; block < BLOCKS; ++block)
        for (int i = 0; i < M; ++i)
            for (int j = 0; j < N; ++j) {
                const Place p = placed<M, N, BLOCKS>(block, i, j);
                to[p.reg * LANES + p.lane] = std::bit_cast<u32>(c[(block * M + i) * N + j]);
            }
}

// fp64: A and B hold one number per lane; rows of the result lie apart by the number of groups of lanes.
template <int M, int BLOCKS> static void multiply_f64(Wave& wave, const Instruction& in) {
    constexpr int K = 4;
    const u32 *a = wave.lanes(in.operand[1].index), *b = wave.lanes(in.operand[2].index);
    const Operand& addend = in.operand[3];
    u32* to = wave.lanes(in.operand[0].index);
    f64 c[BLOCKS][M][M];
    auto each = [&](auto act) {
        for (int block = 0; block < BLOCKS; ++block)
            for (int i = 0; i < M; ++i)
                for (int j = 0; j < M; ++j) {
                    if constexpr (M == 16) act(c[block][i][j], i / 4, i % 4 * 16 + j);
                    else act(c[block][i][j], 0, i * 16 + block * 4 + j);
                }
    };
    each([&](f64& x, int reg, int lane) {
        if (addend.kind == Kind::vector) x = get<f64>(wave.lanes(addend.index) + 2 * reg * LANES, lane);
        else x = scalar<f64>(wave, addend);
    });
    for (int block = 0; block < BLOCKS; ++block)
        for (int k = 0; k < K; ++k)
            for (int i = 0; i < M; ++i)
                for (int j = 0; j < M; ++j) {
                    const int la = M == 16 ? k * 16 + i : k * 16 + block * 4 + i, lb = M == 16 ? k * 16 + j : k * 16 + block * 4 + j;
                    const f64 x = get<f64>(a, la), y = get<f64>(b, lb);
                    c[block][i][j] = __builtin_fma(in.blgp & 1 ? -x : x, in.blgp & 2 ? -y : y, in.blgp & 4 && k == 0 ? -c[block][i][j] : c[block][i][j]);
                }
    each([&](f64& x, int reg, int lane) { put<f64>(to + 2 * reg * LANES, lane, x); });
}

template <class A, class B, class T, int M, int N, int K, int BLOCKS, bool SPARSE = false>
static void M_(std::initializer_list<std::string> names) {
    for (const std::string& name : names) H(name, {Type::u32, Type::u32, Type::u32, std::is_same_v<T, f32> ? Type::f32 : Type::u32}, multiply<A, B, T, M, N, K, BLOCKS, SPARSE>);
}

template <class A, class B> static void eight_bits(const std::string& types) {
    M_<A, B, f32, 16, 16, 32, 1>({"v_mfma_f32_16x16x32_" + types});
    M_<A, B, f32, 32, 32, 16, 1>({"v_mfma_f32_32x32x16_" + types});
    M_<A, B, f32, 16, 16, 64, 1, true>({"v_smfmac_f32_16x16x64_" + types});
    M_<A, B, f32, 32, 32, 32, 1, true>({"v_smfmac_f32_32x32x32_" + types});
}

static const bool there = [] {
    M_<AsF32, AsF32, f32, 32, 32, 1, 2>({"v_mfma_f32_32x32x1_2b_f32", "v_mfma_f32_32x32x1f32"});
    M_<AsF32, AsF32, f32, 16, 16, 1, 4>({"v_mfma_f32_16x16x1_4b_f32", "v_mfma_f32_16x16x1f32"});
    M_<AsF32, AsF32, f32, 4, 4, 1, 16>({"v_mfma_f32_4x4x1_16b_f32", "v_mfma_f32_4x4x1f32"});
    M_<AsF32, AsF32, f32, 32, 32, 2, 1>({"v_mfma_f32_32x32x2_f32", "v_mfma_f32_32x32x2f32"});
    M_<AsF32, AsF32, f32, 16, 16, 4, 1>({"v_mfma_f32_16x16x4_f32", "v_mfma_f32_16x16x4f32"});
    M_<AsF16, AsF16, f32, 32, 32, 4, 2>({"v_mfma_f32_32x32x4_2b_f16", "v_mfma_f32_32x32x4f16"});
    M_<AsF16, AsF16, f32, 16, 16, 4, 4>({"v_mfma_f32_16x16x4_4b_f16", "v_mfma_f32_16x16x4f16"});
    M_<AsF16, AsF16, f32, 4, 4, 4, 16>({"v_mfma_f32_4x4x4_16b_f16", "v_mfma_f32_4x4x4f16"});
    M_<AsF16, AsF16, f32, 32, 32, 8, 1>({"v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8f16"});
    M_<AsF16, AsF16, f32, 16, 16, 16, 1>({"v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x16f16"});
    M_<AsBf16, AsBf16, f32, 32, 32, 4, 2>({"v_mfma_f32_32x32x4_2b_bf16", "v_mfma_f32_32x32x4bf16_1k"});
    M_<AsBf16, AsBf16, f32, 16, 16, 4, 4>({"v_mfma_f32_16x16x4_4b_bf16", "v_mfma_f32_16x16x4bf16_1k"});
    M_<AsBf16, AsBf16, f32, 4, 4, 4, 16>({"v_mfma_f32_4x4x4_16b_bf16", "v_mfma_f32_4x4x4bf16_1k"});
    M_<AsBf16, AsBf16, f32, 32, 32, 8, 1>({"v_mfma_f32_32x32x8_bf16", "v_mfma_f32_32x32x8bf16_1k"});
    M_<AsBf16, AsBf16, f32, 16, 16, 16, 1>({"v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x16bf16_1k"});
    M_<AsF16, AsF16, f32, 16, 16, 32, 1>({"v_mfma_f32_16x16x32_f16"}), M_<AsF16, AsF16, f32, 32, 32, 16, 1>({"v_mfma_f32_32x32x16_f16"});
    M_<AsBf16, AsBf16, f32, 16, 16, 32, 1>({"v_mfma_f32_16x16x32_bf16"}), M_<AsBf16, AsBf16, f32, 32, 32, 16, 1>({"v_mfma_f32_32x32x16_bf16"});
    M_<AsI8, AsI8, i32, 16, 16, 64, 1>({"v_mfma_i32_16x16x64_i8"}), M_<AsI8, AsI8, i32, 32, 32, 32, 1>({"v_mfma_i32_32x32x32_i8"});
    M_<AsXf32, AsXf32, f32, 16, 16, 8, 1>({"v_mfma_f32_16x16x8_xf32", "v_mfma_f32_16x16x8xf32"});
    M_<AsXf32, AsXf32, f32, 32, 32, 4, 1>({"v_mfma_f32_32x32x4_xf32", "v_mfma_f32_32x32x4xf32"});
    M_<AsI8, AsI8, i32, 32, 32, 4, 2>({"v_mfma_i32_32x32x4_2b_i8", "v_mfma_i32_32x32x4i8"});
    M_<AsI8, AsI8, i32, 16, 16, 4, 4>({"v_mfma_i32_16x16x4_4b_i8", "v_mfma_i32_16x16x4i8"});
    M_<AsI8, AsI8, i32, 4, 4, 4, 16>({"v_mfma_i32_4x4x4_16b_i8", "v_mfma_i32_4x4x4i8"});
    M_<AsI8, AsI8, i32, 32, 32, 16, 1>({"v_mfma_i32_32x32x16_i8", "v_mfma_i32_32x32x16i8"});
    M_<AsI8, AsI8, i32, 16, 16, 32, 1>({"v_mfma_i32_16x16x32_i8", "v_mfma_i32_16x16x32i8"});
    M_<AsF16, AsF16, f32, 16, 16, 32, 1, true>({"v_smfmac_f32_16x16x32_f16"});
    M_<AsF16, AsF16, f32, 32, 32, 16, 1, true>({"v_smfmac_f32_32x32x16_f16"});
    M_<AsBf16, AsBf16, f32, 16, 16, 32, 1, true>({"v_smfmac_f32_16x16x32_bf16"});
    M_<AsBf16, AsBf16, f32, 32, 32, 16, 1, true>({"v_smfmac_f32_32x32x16_bf16"});
    M_<AsI8, AsI8, i32, 16, 16, 64, 1, true>({"v_smfmac_i32_16x16x64_i8"});
    M_<AsI8, AsI8, i32, 32, 32, 32, 1, true>({"v_smfmac_i32_32x32x32_i8"});
    M_<AsF16, AsF16, f32, 16, 16, 64, 1, true>({"v_smfmac_f32_16x16x64_f16"}), M_<AsF16, AsF16, f32, 32, 32, 32, 1, true>({"v_smfmac_f32_32x32x32_f16"});
    M_<AsBf16, AsBf16, f32, 16, 16, 64, 1, true>({"v_smfmac_f32_16x16x64_bf16"}), M_<AsBf16, AsBf16, f32, 32, 32, 32, 1, true>({"v_smfmac_f32_32x32x32_bf16"});
    M_<AsI8, AsI8, i32, 16, 16, 128, 1, true>({"v_smfmac_i32_16x16x128_i8"}), M_<AsI8, AsI8, i32, 32, 32, 64, 1, true>({"v_smfmac_i32_32x32x64_i8"});
    eight_bits<AsFp8, AsFp8>("fp8_fp8"), eight_bits<AsFp8, AsBf8>("fp8_bf8");
    eight_bits<AsBf8, AsFp8>("bf8_fp8"), eight_bits<AsBf8, AsBf8>("bf8_bf8");
    const std::initializer_list<Type> wide = {Type::f64, Type::f64, Type::f64, Type::f64};
    H("v_mfma_f64_16x16x4_f64", wide, multiply_f64<16, 1>), H("v_mfma_f64_16x16x4f64", wide, multiply_f64<16, 1>);
    H("v_mfma_f64_4x4x4_4b_f64", wide, multiply_f64<4, 4>), H("v_mfma_f64_4x4x4f64", wide, multiply_f64<4, 4>);
    return true;
}();

}  // namespace machine
