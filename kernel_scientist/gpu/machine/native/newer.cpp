// Rows of instructions that gfx950 (CDNA4) adds and that are simple; `program.py` lists what is missing.
#include "lanes.h"

namespace machine {

// NaN if any is NaN (IEEE 754-2019, minimum and maximum); -0 is below +0.
template <class T> static T minimum(T a, T b) { return a != a || b != b ? QUIET_NAN<T> : smaller(a, b); }
template <class T> static T maximum(T a, T b) { return a != a || b != b ? QUIET_NAN<T> : larger(a, b); }

// Any function of three bits; the operand after the sources is its table, indexed by the bits as a number.
template <class T> static void any_bits(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[3][2 * LANES], out[LANES];
    const u32 *a = fetch<T>(wave, in, 1, 0, room[0]), *b = fetch<T>(wave, in, 2, 1, room[1]), *c = fetch<T>(wave, in, 3, 2, room[2]);
    const u32 table = u32(in.offset1);
    for (int l = 0; l < LANES; ++l) {
        u32 result = 0;
        for (int n = 0; n < 8; ++n) {
            if (!(table >> n & 1)) continue;
            result |= (n & 4 ? a[l] : ~a[l]) & (n & 2 ? b[l] : ~b[l]) & (n & 1 ? c[l] : ~c[l]);
        }
        put<T>(out, l, T(result));
    }
    commit<T, KEPT>(wave, in, out);
}

// Rows of `ROW` lanes: odd ones of the destination and even ones of the source are exchanged.
template <int ROW> static void exchange_rows(Wave& wave, const Instruction& in) {
    u32 *to = wave.lanes(in.operand[0].index), *from = wave.lanes(in.operand[1].index);
    const u64 exec = wave.exec();
    for (int l = 0; l < LANES; ++l)
        if (!(l & ROW) && (exec >> l & 1) && (exec >> (l + ROW) & 1)) std::swap(from[l], to[l + ROW]);
}

// Two numbers shifted and saturated to bytes, in one half of the destination; the other half is kept.
template <class T> static void V_BYTES(const char* name) {
    KEEPING<u16, i32, i32, u32>(name, [](i32 a, i32 b, u32 n) {
        auto byte = [&](i32 x) { return u16(u8(std::clamp<i32>(x >> (n & 31), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()))); };
        return u16(byte(a) | byte(b) << 8);
    });
}

static const bool there = [] {
    V<u32, u32>("v_prng_b32", [](u32 a) { return a << 1 ^ (a >> 31 ? 197u : 0u); });
    V<f32, u16>("v_cvt_f32_bf16", [](u16 a) { return from_bf16(a); });
    V<u32, f32, f32>("v_cvt_pk_f16_f32", [](f32 a, f32 b) { return u32(bits(f16(a))) | u32(bits(f16(b))) << 16; });
    V<u32, f32, f32>("v_cvt_pk_bf16_f32", [](f32 a, f32 b) { return u32(to_bf16(a)) | u32(to_bf16(b)) << 16; });
    V<f32, f32, f32, f32>("v_minimum3_f32", [](f32 a, f32 b, f32 c) { return minimum(minimum(a, b), c); });
    V<f32, f32, f32, f32>("v_maximum3_f32", [](f32 a, f32 b, f32 c) { return maximum(maximum(a, b), c); });
    V_BYTES<i8>("v_ashr_pk_i8_i32"), V_BYTES<u8>("v_ashr_pk_u8_i32");
    H("v_bitop3_b32", {Type::u32, Type::u32, Type::u32, Type::u32}, any_bits<u32>);
    H("v_bitop3_b16", {Type::u16, Type::u16, Type::u16, Type::u16}, any_bits<u16>);
    H("v_permlane16_swap_b32", {Type::u32, Type::u32}, exchange_rows<16>);
    H("v_permlane32_swap_b32", {Type::u32, Type::u32}, exchange_rows<32>);
    return true;
}();

}  // namespace machine
