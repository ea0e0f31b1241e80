// Rows of vector instructions on floating-point numbers: arithmetic, transcendental functions, parts of a division.
//
// Transcendental functions are correctly rounded where the device's err by up to 1 ulp.
#include "lanes.h"

namespace machine {

template <class T> static T middle(T a, T b, T c) {
    if (a != a || b != b || c != c) return smaller(smaller(a, b), c);
    return larger(smaller(a, b), smaller(larger(a, b), c));
}
template <class T> static void arithmetic(const std::string& type) {
    auto name = [&](const char* what) { return what + type; };
    V<T, T, T>(name("v_add_"), [](T a, T b) { return T(a + b); });
    V<T, T, T>(name("v_mul_"), [](T a, T b) { return T(a * b); });
    V<T, T, T>(name("v_min_"), [](T a, T b) { return smaller(a, b); });
    V<T, T, T>(name("v_max_"), [](T a, T b) { return larger(a, b); });
}
template <class T> static void shorter_arithmetic(const std::string& type) {
    auto name = [&](const char* what) { return what + type; };
    V<T, T, T>(name("v_sub_"), [](T a, T b) { return T(a - b); });
    V<T, T, T>(name("v_subrev_"), [](T a, T b) { return T(b - a); });
    V<T, T, T, T>(name("v_min3_"), [](T a, T b, T c) { return smaller(smaller(a, b), c); });
    V<T, T, T, T>(name("v_max3_"), [](T a, T b, T c) { return larger(larger(a, b), c); });
    V<T, T, T, T>(name("v_med3_"), [](T a, T b, T c) { return middle(a, b, c); });
}
static void fused_arithmetic() {
    V<f32, f32, f32, f32>("v_fma_f32", [](f32 a, f32 b, f32 c) { return fused(a, b, c); });
    V<f64, f64, f64, f64>("v_fma_f64", [](f64 a, f64 b, f64 c) { return fused(a, b, c); });
    KEEPING<f16, f16, f16, f16>("v_fma_f16", [](f16 a, f16 b, f16 c) { return fused(a, b, c); });
    KEEPING<f16, f16, f16, f16>("v_mad_f16", [](f16 a, f16 b, f16 c) { return f16(f16(a * b) + c); });
    V<f16, f16, f16, f16>("v_fma_legacy_f16", [](f16 a, f16 b, f16 c) { return fused(a, b, c); });
    V<f16, f16, f16, f16>("v_mad_legacy_f16", [](f16 a, f16 b, f16 c) { return f16(f16(a * b) + c); });
    ONTO<f32, f32, f32>("v_fmac_f32", [](f32 a, f32 b, f32 c) { return fused(a, b, c); });
    ONTO<f64, f64, f64>("v_fmac_f64", [](f64 a, f64 b, f64 c) { return fused(a, b, c); });
    ONTO<f16, f16, f16>("v_mac_f16", [](f16 a, f16 b, f16 c) { return f16(f16(a * b) + c); });
}

// The text has the operands in this order: a * b + c for either, with the literal as b or as c.
static void with_literals() {
    V<f32, f32, f32, f32>("v_fmaak_f32", [](f32 a, f32 b, f32 c) { return fused(a, b, c); });
    V<f32, f32, f32, f32>("v_fmamk_f32", [](f32 a, f32 b, f32 c) { return fused(a, b, c); });
    V<f16, f16, f16, f16>("v_madak_f16", [](f16 a, f16 b, f16 c) { return f16(f16(a * b) + c); });
    V<f16, f16, f16, f16>("v_madmk_f16", [](f16 a, f16 b, f16 c) { return f16(f16(a * b) + c); });
    V<f32, f32, f32>("v_mul_legacy_f32", [](f32 a, f32 b) { return a == 0 || b == 0 ? 0.0f : a * b; });
}

// The device's approximations of fp32 functions neither read nor write denormal numbers (LLVM, SIISelLowering).
template <class T> static T without_denormals(T x) {
    if constexpr (sizeof(T) == 4) return is_denormal(x) ? std::copysign(0.0f, x) : x;
    else return x;
}
template <class T, class F> static void APPROXIMATE(const std::string& name, F) {
    V<T, T>(name, [](T a) { return without_denormals(T(F{}(f64(without_denormals(a))))); });
}

template <class T> static void functions(const std::string& type) {
    auto name = [&](const char* what) { return what + type; };
    APPROXIMATE<T>(name("v_rcp_"), [](f64 a) { return 1.0 / a; });
    APPROXIMATE<T>(name("v_rsq_"), [](f64 a) { return 1.0 / std::sqrt(a); });
    APPROXIMATE<T>(name("v_sqrt_"), [](f64 a) { return std::sqrt(a); });
    V<T, T>(name("v_trunc_"), [](T a) { return T(std::trunc(f64(a))); });
    V<T, T>(name("v_ceil_"), [](T a) { return T(std::ceil(f64(a))); });
    V<T, T>(name("v_floor_"), [](T a) { return T(std::floor(f64(a))); });
    V<T, T>(name("v_rndne_"), [](T a) { return T(std::nearbyint(f64(a))); });
    V<T, T>(name("v_frexp_mant_"), [](T a) {
        int exponent;
        return std::isfinite(f64(a)) ? T(std::frexp(f64(a), &exponent)) : a;
    });
    // Below 1 by definition: the largest number below 1 for tiny negative numbers.
    V<T, T>(name("v_fract_"), [](T a) {
        const T part = T(f64(a) - std::floor(f64(a))), below = sizeof(T) == 8 ? T(0x1.fffffffffffffp-1) : sizeof(T) == 4 ? T(0x1.fffffep-1) : T(0x1.ffcp-1);
        return part < T(1) || part != part ? part : below;
    });
}
template <class T> static void transcendental(const std::string& type) {
    auto name = [&](const char* what) { return what + type; };
    APPROXIMATE<T>(name("v_exp_"), [](f64 a) { return std::exp2(f32(a)); });
    APPROXIMATE<T>(name("v_log_"), [](f64 a) { return std::log2(f32(a)); });
    // Of revolutions.
    V<T, T>(name("v_sin_"), [](T a) { return T(std::sin(6.283185307179586476925 * (f64(a) - std::floor(f64(a))))); });
    V<T, T>(name("v_cos_"), [](T a) { return T(std::cos(6.283185307179586476925 * (f64(a) - std::floor(f64(a))))); });
}
template <class T> static i32 exponent_of(T a) {
    int exponent = 0;
    if (std::isfinite(f64(a)) && a != T(0)) std::frexp(f64(a), &exponent);
    return exponent;
}

// "v_div_scale": scales a numerator or a denominator so that the steps of a division neither overflow nor underflow.
template <class T> static T scaled(T x, T denominator, T numerator, u8& flag) {
    constexpr int by = sizeof(T) == 8 ? 128 : 64, far = sizeof(T) == 8 ? 768 : 96, tiny = sizeof(T) == 8 ? 53 : 23;
    flag = 0;
    if (numerator == 0 || denominator == 0) return std::numeric_limits<T>::quiet_NaN();
    const bool of_denominator = std::bit_cast<Raw<T>>(x) == std::bit_cast<Raw<T>>(denominator);
    const bool of_numerator = std::bit_cast<Raw<T>>(x) == std::bit_cast<Raw<T>>(numerator);
    if (biased(numerator) - biased(denominator) >= far) {
        flag = 1;
        return of_denominator ? std::ldexp(x, by) : x;
    }
    if (is_denormal(denominator)) return std::ldexp(x, by);
    const T quotient = numerator / denominator;  // one below all denormal numbers is rounded once only if it is scaled as well
    const bool small_reciprocal = is_denormal(T(1) / denominator), small_quotient = is_denormal(quotient) || quotient == 0;
    if (small_reciprocal && small_quotient) {  // down, so that neither the denominator nor the quotient is lost
        flag = 1;
        return of_denominator ? std::ldexp(x, -by) : x;
    }
    if (small_reciprocal) return std::ldexp(x, -by);
    if (small_quotient) {
        flag = 1;
        return of_numerator ? std::ldexp(x, by) : x;
    }
    return biased(numerator) <= tiny ? std::ldexp(x, by) : x;
}
template <class T> static void scale_division(Wave& wave, const Instruction& in) {
    const Kept mode;  // so that it is seen what would become denormal
    alignas(64) u32 room[3][2 * LANES], out[2 * LANES];
    alignas(64) u8 flags[LANES];
    const u32* a = fetch<T>(wave, in, 2, 0, room[0]);
    const u32* b = fetch<T>(wave, in, 3, 1, room[1]);
    const u32* c = fetch<T>(wave, in, 4, 2, room[2]);
    for (int l = 0; l < LANES; ++l) put<T>(out, l, scaled(get<T>(a, l), get<T>(b, l), get<T>(c, l), flags[l]));
    const u64 mask = packed(flags) & wave.exec();
    commit<T>(wave, in, out);
    set_mask(wave, in.operand[1], mask);
}
// "v_div_fmas": a fused step, scaled back where "v_div_scale" set VCC: up if the quotient is large, else down.
static f32 fused_by(f32 a, f32 b, f32 c, int by) { return f32(std::ldexp(to_odd(f64(a) * f64(b), f64(c)), by)); }
// Where the scaled result is denormal and what the fused step gave lies half way between two numbers, what that step lost
// decides. Nowhere else does it matter that the result is rounded a second time.
static f64 fused_by(f64 a, f64 b, f64 c, int by) {
    const f64 near = __builtin_fma(a, b, c), scaled = std::ldexp(near, by), least = std::numeric_limits<f64>::denorm_min();
    const f64 rest = std::isfinite(scaled) ? near - std::ldexp(scaled, -by) : 0;
    if (rest == 0 || std::fabs(rest) != std::ldexp(least, -by - 1)) return scaled;
    const f64 product = a * b, lost = __builtin_fma(a, b, -product) + (product - (near - c));
    return lost != 0 && (rest > 0) == (lost > 0) ? scaled + std::copysign(least, rest) : scaled;
}
template <class T> static void fuse_division(Wave& wave, const Instruction& in) {
    [[maybe_unused]] const Mode64<T> mode;
    constexpr int by = sizeof(T) == 8 ? 128 : 64;
    alignas(64) u32 room[3][2 * LANES], out[2 * LANES];
    const u32* a = fetch<T>(wave, in, 1, 0, room[0]);
    const u32* b = fetch<T>(wave, in, 2, 1, room[1]);
    const u32* c = fetch<T>(wave, in, 3, 2, room[2]);
    const u64 mask = wave.pair(VCC);
    for (int l = 0; l < LANES; ++l) {
        const T x = get<T>(a, l), y = get<T>(b, l), z = get<T>(c, l);
        put<T>(out, l, mask >> l & 1 ? fused_by(x, y, z, biased(z) > BIAS<T> ? by : -by) : fused(x, y, z));
    }
    commit<T>(wave, in, out);
}
// "v_div_fixup": the quotient a of c / b, with the special cases of IEEE 754.
template <class T> static T repaired(T a, T denominator, T numerator) {
    const f64 b = f64(denominator), c = f64(numerator);
    const bool negative = std::signbit(b) != std::signbit(c);
    const T nan = quiet(std::bit_cast<T>(Raw<T>(~Raw<T>(0) << (MANTISSA<T> - 1))));
    auto with_sign = [&](T x) { return negative ? T(-x) : x; };
    if (std::isnan(c)) return quiet(numerator);
    if (std::isnan(b)) return quiet(denominator);
    if ((b == 0 && c == 0) || (std::isinf(b) && std::isinf(c))) return nan;
    if (b == 0 || std::isinf(c)) return with_sign(T(std::numeric_limits<f64>::infinity()));
    if (std::isinf(b) || c == 0) return with_sign(T(0));
    constexpr int least = sizeof(T) == 8 ? -1075 : sizeof(T) == 4 ? -150 : -25;
    if (biased(numerator) - biased(denominator) < least) return with_sign(T(0));
    if (std::isnan(f64(a))) return with_sign(T(std::numeric_limits<f64>::infinity()));  // the quotient overflowed
    return with_sign(std::signbit(f64(a)) ? T(-a) : a);
}

// 53 bits of 2 / pi, for reducing the argument of a sine: those from bit 53 * n on, further ones for large arguments.
static f64 part_of_inverse(f64 a, u32 n) {
    static constexpr u32 digits[] = {
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0,
        0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4,
        0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
        0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};
    constexpr int most = 1201;  // bits that the device has
    const int exponent = biased(a), shift = int(n & 31) * 53 + std::max(exponent - 1077, 0);
    f64 value = 0;
    for (int bit = shift; bit < shift + 53; ++bit) value = value * 2 + (bit < most ? digits[bit / 32] >> (31 - bit % 32) & 1 : 0);
    return std::ldexp(value, -53 - shift + (exponent >= 1968 ? 128 : 0));
}

static const bool there = [] {
    arithmetic<f32>("f32"), arithmetic<f16>("f16"), arithmetic<f64>("f64");
    shorter_arithmetic<f32>("f32"), shorter_arithmetic<f16>("f16"), fused_arithmetic();
    with_literals();
    functions<f32>("f32"), functions<f16>("f16"), functions<f64>("f64");
    transcendental<f32>("f32"), transcendental<f16>("f16");
    APPROXIMATE<f32>("v_rcp_iflag_f32", [](f64 a) { return 1.0 / a; });
    APPROXIMATE<f32>("v_exp_legacy_f32", [](f64 a) { return std::exp2(f32(a)); });
    APPROXIMATE<f32>("v_log_legacy_f32", [](f64 a) { return std::log2(f32(a)); });
    V<f64, f64, u32>("v_trig_preop_f64", [](f64 a, u32 b) { return part_of_inverse(a, b); });
    V<i32, f32>("v_frexp_exp_i32_f32", [](f32 a) { return exponent_of(a); });
    V<i32, f64>("v_frexp_exp_i32_f64", [](f64 a) { return exponent_of(a); });
    V<i16, f16>("v_frexp_exp_i16_f16", [](f16 a) { return i16(exponent_of(a)); });
    V<f32, f32, i32>("v_ldexp_f32", [](f32 a, i32 b) { return std::ldexp(a, b); });
    V<f64, f64, i32>("v_ldexp_f64", [](f64 a, i32 b) { return std::ldexp(a, b); });
    V<f16, f16, i16>("v_ldexp_f16", [](f16 a, i16 b) { return f16(std::ldexp(f64(a), b)); });
    H("v_div_scale_f32", {Type::f32, Type::u64, Type::f32, Type::f32, Type::f32}, scale_division<f32>);
    H("v_div_scale_f64", {Type::f64, Type::u64, Type::f64, Type::f64, Type::f64}, scale_division<f64>);
    H("v_div_fmas_f32", {Type::f32, Type::f32, Type::f32, Type::f32}, fuse_division<f32>);
    H("v_div_fmas_f64", {Type::f64, Type::f64, Type::f64, Type::f64}, fuse_division<f64>);
    V<f32, f32, f32, f32>("v_div_fixup_f32", [](f32 a, f32 b, f32 c) { return repaired(a, b, c); });
    V<f64, f64, f64, f64>("v_div_fixup_f64", [](f64 a, f64 b, f64 c) { return repaired(a, b, c); });
    KEEPING<f16, f16, f16, f16>("v_div_fixup_f16", [](f16 a, f16 b, f16 c) { return repaired(a, b, c); });
    V<f16, f16, f16, f16>("v_div_fixup_legacy_f16", [](f16 a, f16 b, f16 c) { return repaired(a, b, c); });
    return true;
}();

}  // namespace machine
