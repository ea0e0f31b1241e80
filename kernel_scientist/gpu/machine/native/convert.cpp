// Rows of conversions between number formats.
#include "lanes.h"

namespace machine {

// Towards zero, with the ends of the range for what lies outside and 0 for NaN.
template <class I, class F> static I whole(F x) {
    const f64 value = std::trunc(f64(x));
    if (value != value) return 0;
    if (value <= f64(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
    if (value >= f64(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
    return I(value);
}
// To fp16, towards zero.
static u16 toward_zero(f32 x) {
    const f16 nearest = f16(x);
    const u16 code = bits(nearest);
    if (x != x || !(std::fabs(f32(nearest)) > std::fabs(x))) return code;
    return u16(code - 1);  // also from infinity to the largest number
}
template <int M> static u8 stochastic(f32 x, u32 random, bool saturate) {
    if (!std::isfinite(x)) return to_fnuz8<M>(x, saturate);
    // The random number's upper bits are added below the mantissa's last bit that is kept.
    const u32 added = bits(x) + (random >> (32 - (23 - M)));
    const f32 cut = as_f32(added & ~((1u << (23 - M)) - 1));
    return to_fnuz8<M>(cut, saturate);
}

static void between() {
    V<f32, i32>("v_cvt_f32_i32", [](i32 a) { return f32(a); });
    V<f32, u32>("v_cvt_f32_u32", [](u32 a) { return f32(a); });
    V<i32, f32>("v_cvt_i32_f32", [](f32 a) { return whole<i32>(a); });
    V<u32, f32>("v_cvt_u32_f32", [](f32 a) { return whole<u32>(a); });
    V<i32, f32>("v_cvt_rpi_i32_f32", [](f32 a) { return whole<i32>(std::floor(a + 0.5f)); });
    V<i32, f32>("v_cvt_flr_i32_f32", [](f32 a) { return whole<i32>(std::floor(f64(a))); });
    V<f16, f32>("v_cvt_f16_f32", [](f32 a) { return f16(a); });
    V<f32, f16>("v_cvt_f32_f16", [](f16 a) { return f32(a); });
    V<f32, f64>("v_cvt_f32_f64", [](f64 a) { return f32(a); });
    V<f64, f32>("v_cvt_f64_f32", [](f32 a) { return f64(a); });
    V<f64, i32>("v_cvt_f64_i32", [](i32 a) { return f64(a); });
    V<f64, u32>("v_cvt_f64_u32", [](u32 a) { return f64(a); });
    V<i32, f64>("v_cvt_i32_f64", [](f64 a) { return whole<i32>(a); });
    V<u32, f64>("v_cvt_u32_f64", [](f64 a) { return whole<u32>(a); });
    V<f16, u16>("v_cvt_f16_u16", [](u16 a) { return f16(f32(a)); });
    V<f16, i16>("v_cvt_f16_i16", [](i16 a) { return f16(f32(a)); });
    V<u16, f16>("v_cvt_u16_f16", [](f16 a) { return whole<u16>(a); });
    V<i16, f16>("v_cvt_i16_f16", [](f16 a) { return whole<i16>(a); });
    V<f32, u32>("v_cvt_f32_ubyte0", [](u32 a) { return f32(a & 255); });
    V<f32, u32>("v_cvt_f32_ubyte1", [](u32 a) { return f32(a >> 8 & 255); });
    V<f32, u32>("v_cvt_f32_ubyte2", [](u32 a) { return f32(a >> 16 & 255); });
    V<f32, u32>("v_cvt_f32_ubyte3", [](u32 a) { return f32(a >> 24); });
    V<f32, u32>("v_cvt_f32_fp8", [](u32 a) { return FP8[a & 255]; });
    V<f32, u32>("v_cvt_f32_bf8", [](u32 a) { return BF8[a & 255]; });
}

static i64 scaled(f32 x, f32 low, f32 most) {
    return x != x ? 0 : i64(std::nearbyint(std::clamp(x, low, 1.0f) * most));
}
template <class T> static void normed(const std::string& type) {
    V<u32, T, T>("v_cvt_pknorm_i16_" + type, [](T a, T b) { return u32(u16(scaled(f32(a), -1, 32767))) | u32(scaled(f32(b), -1, 32767)) << 16; });
    V<u32, T, T>("v_cvt_pknorm_u16_" + type, [](T a, T b) { return u32(scaled(f32(a), 0, 65535)) | u32(scaled(f32(b), 0, 65535)) << 16; });
}
static void pairs() {
    normed<f32>("f32"), normed<f16>("f16");
    V<i16, f16>("v_cvt_norm_i16_f16", [](f16 a) { return i16(scaled(f32(a), -1, 32767)); });
    V<u16, f16>("v_cvt_norm_u16_f16", [](f16 a) { return u16(scaled(f32(a), 0, 65535)); });
    V<f32, u32>("v_cvt_off_f32_i4", [](u32 a) { return f32(i32(a << 28) >> 28) / 16; });
    V<u32, f32, f32>("v_cvt_pkrtz_f16_f32", [](f32 a, f32 b) { return u32(toward_zero(a)) | u32(toward_zero(b)) << 16; });
    V<u32, u32, u32>("v_cvt_pk_u16_u32", [](u32 a, u32 b) { return std::min(a, 65535u) | std::min(b, 65535u) << 16; });
    V<u32, i32, i32>("v_cvt_pk_i16_i32", [](i32 a, i32 b) { return u32(u16(std::clamp(a, -32768, 32767))) | u32(u16(std::clamp(b, -32768, 32767))) << 16; });
}

// Two codes into half of the destination, the other half is kept.
template <int M> static void narrow_pair(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[2][2 * LANES], out[LANES];
    const u32* a = fetch<f32>(wave, in, 1, 0, room[0]);
    const u32* b = fetch<f32>(wave, in, 2, 1, room[1]);
    u32* to = wave.lanes(in.operand[0].index);
    const int shift = in.op_sel & 8 ? 16 : 0;
    const bool saturate = wave.s[MODE] & OVERFLOW_16;
    for (int l = 0; l < LANES; ++l) {
        const u32 codes = u32(to_fnuz8<M>(as_f32(a[l]), saturate)) | u32(to_fnuz8<M>(as_f32(b[l]), saturate)) << 8;
        out[l] = (to[l] & ~(0xffffu << shift)) | codes << shift;
    }
    blend(to, out, writable(wave, in));
}
// One code, rounded at random, into a byte of the destination.
template <int M> static void narrow_stochastic(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[2][2 * LANES], out[LANES];
    const u32* a = fetch<f32>(wave, in, 1, 0, room[0]);
    const u32* b = fetch<u32>(wave, in, 2, 1, room[1]);
    u32* to = wave.lanes(in.operand[0].index);
    const int shift = 8 * (in.op_sel >> 2 & 3);
    for (int l = 0; l < LANES; ++l)
        out[l] = (to[l] & ~(0xffu << shift)) | u32(stochastic<M>(as_f32(a[l]), b[l], wave.s[MODE] & OVERFLOW_16)) << shift;
    blend(to, out, writable(wave, in));
}
// Two codes of a word to two fp32 numbers in two registers.
template <int M> static void widen_pair(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[2 * LANES], out[2][LANES];
    const u32* a = fetch<u32>(wave, in, 1, 0, room);
    const f32* values = M == 3 ? FP8 : BF8;
    const int shift = in.op_sel & 1 ? 16 : 0;
    for (int l = 0; l < LANES; ++l)
        out[0][l] = bits(values[a[l] >> shift & 255]), out[1][l] = bits(values[a[l] >> (shift + 8) & 255]);
    u32* to = wave.lanes(in.operand[0].index);
    blend(to, out[0], writable(wave, in));
    blend(to + LANES, out[1], writable(wave, in));
}

static const bool there = [] {
    between(), pairs();
    H("v_cvt_pk_fp8_f32", {Type::u32, Type::f32, Type::f32}, narrow_pair<3>);
    H("v_cvt_pk_bf8_f32", {Type::u32, Type::f32, Type::f32}, narrow_pair<2>);
    H("v_cvt_sr_fp8_f32", {Type::u32, Type::f32, Type::u32}, narrow_stochastic<3>);
    H("v_cvt_sr_bf8_f32", {Type::u32, Type::f32, Type::u32}, narrow_stochastic<2>);
    H("v_cvt_pk_f32_fp8", {Type::u64, Type::u32}, widen_pair<3>);
    H("v_cvt_pk_f32_bf8", {Type::u64, Type::u32}, widen_pair<2>);
    return true;
}();

}  // namespace machine
