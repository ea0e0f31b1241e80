// Number formats that C++ lacks, with round to nearest even.
#pragma once

#include <cmath>
#include <limits>

#include "machine.h"

namespace machine {

inline f32 as_f32(u32 x) { return std::bit_cast<f32>(x); }
inline u32 bits(f32 x) { return std::bit_cast<u32>(x); }
inline u16 bits(f16 x) { return std::bit_cast<u16>(x); }
inline f16 as_f16(u16 x) { return std::bit_cast<f16>(x); }

template <class T> constexpr int BIAS = sizeof(T) == 8 ? 1023 : sizeof(T) == 4 ? 127 : 15;
template <class T> constexpr int MANTISSA = sizeof(T) == 8 ? 52 : sizeof(T) == 4 ? 23 : 10;
template <class T> using Raw = std::conditional_t<sizeof(T) == 8, u64, std::conditional_t<sizeof(T) == 4, u32, u16>>;
template <class T> inline int biased(T x) { return int(std::bit_cast<Raw<T>>(x) >> MANTISSA<T> & (2 * BIAS<T> + 1)); }
template <class T> inline bool is_denormal(T x) { return x != T(0) && biased(x) == 0; }
template <class T> inline T quiet(T x) { return std::bit_cast<T>(Raw<T>(std::bit_cast<Raw<T>>(x) | Raw<T>(1) << (MANTISSA<T> - 1))); }
template <class T> constexpr T QUIET_NAN = std::bit_cast<T>(Raw<T>(Raw<T>(4 * BIAS<T> + 3) << (MANTISSA<T> - 1)));
// Without branches, so that compilers compute these for several lanes at once.
template <class T> [[gnu::always_inline]] inline bool signals(T x) { return (x != x) & !(std::bit_cast<Raw<T>>(x) >> (MANTISSA<T> - 1) & 1); }

// Of a NaN and a number the number, unless the NaN signals (IEEE mode, in which kernels start); -0 is below +0.
template <class T> [[gnu::always_inline]] inline T chosen(T a, T b, bool first) {
    const T number = (b != b) | ((a == a) & first) ? a : b;
    // A second choice would make g++ give up on doing several lanes at once.
    const Raw<T> bits = std::bit_cast<Raw<T>>(number), mask = Raw<T>(0) - Raw<T>(signals(a) | signals(b));
    return std::bit_cast<T>(Raw<T>((bits & ~mask) | (std::bit_cast<Raw<T>>(QUIET_NAN<T>) & mask)));
}
template <class T> [[gnu::always_inline]] inline bool negative(T x) { return std::bit_cast<Raw<T>>(x) >> (8 * sizeof(T) - 1); }
template <class T> [[gnu::always_inline]] inline T smaller(T a, T b) { return chosen(a, b, (a < b) | ((a == b) & negative(a))); }
template <class T> [[gnu::always_inline]] inline T larger(T a, T b) { return chosen(a, b, (a > b) | ((a == b) & !negative(a))); }

// A sum in fp64 whose last bit is set if anything was lost: rounding it again to a shorter format rounds as if once.
inline f64 to_odd(f64 a, f64 b) {
    const f64 sum = a + b, part = sum - a, lost = (a - (sum - part)) + (b - part);
    if (lost == 0 || !std::isfinite(sum) || (std::bit_cast<u64>(sum) & 1)) return sum;
    return std::nextafter(sum, lost > 0 ? std::numeric_limits<f64>::infinity() : -std::numeric_limits<f64>::infinity());
}
// a * b + c with one rounding. fp64 holds the products of fp16 and of fp32 numbers.
inline f32 fused(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
inline f64 fused(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
inline f16 fused(f16 a, f16 b, f16 c) { return f16(to_odd(f64(a) * f64(b), f64(c))); }

inline f32 from_bf16(u16 x) { return as_f32(u32(x) << 16); }
inline u16 to_bf16(f32 x) {
    u32 b = bits(x);
    if ((b & 0x7fffffff) > 0x7f800000) return u16(b >> 16 | 0x40);
    return u16((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

// The 8-bit formats of CDNA3 (FNUZ): no infinities, no negative zero; 0x80 is NaN. `M`: bits of the mantissa.
template <int M> inline f32 from_fnuz8(u8 x) {
    constexpr int bias = M == 3 ? 8 : 16;
    if (x == 0x80) return std::numeric_limits<f32>::quiet_NaN();
    const int exponent = x >> M & ((1 << (7 - M)) - 1), mantissa = x & ((1 << M) - 1);
    const f32 value = exponent ? std::ldexp(f32((1 << M) + mantissa), exponent - bias - M) : std::ldexp(f32(mantissa), 1 - bias - M);
    return x & 0x80 ? -value : value;
}
// Round to nearest even; beyond the largest number NaN, or that number if the mode FP16_OVFL asks for it.
template <int M> inline u8 to_fnuz8(f32 x, bool saturate) {
    constexpr int bias = M == 3 ? 8 : 16, least = 1 - bias - M;
    constexpr f32 most = M == 3 ? 240.0f : 57344.0f;
    if (!std::isfinite(x)) return 0x80;
    const u8 sign = std::signbit(x) ? 0x80 : 0;
    const f32 size = std::fabs(x);
    if (size >= 2 * most) return saturate ? sign | 0x7f : 0x80;
    int exponent;
    std::frexp(size, &exponent);
    const int step = size == 0 ? least : (exponent - 1 - M < least ? least : exponent - 1 - M);
    const int count = int(std::nearbyint(std::ldexp(size, -step)));
    if (count == 0) return 0;
    // `count` is in units of 2^step; the code of a number is linear in it within a binade, and carries into the next.
    const int code = step == least ? count : ((step - least) << M) + count;
    return code <= 0x7f ? sign | u8(code) : saturate ? sign | 0x7f : 0x80;
}

extern const f32* const FP8;  // values by code: e4m3fnuz
extern const f32* const BF8;  // e5m2fnuz

}  // namespace machine
