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
// Round to nearest even; beyond the largest number and for infinities: that number (saturation), as the device does.
template <int M> inline u8 to_fnuz8(f32 x) {
    constexpr int bias = M == 3 ? 8 : 16, least = 1 - bias - M;
    constexpr f32 most = M == 3 ? 240.0f : 57344.0f;
    if (std::isnan(x)) return 0x80;
    const u8 sign = std::signbit(x) ? 0x80 : 0;
    const f32 size = std::fabs(x);
    if (size >= most) return sign | 0x7f;
    int exponent;
    std::frexp(size, &exponent);
    const int step = size == 0 ? least : (exponent - 1 - M < least ? least : exponent - 1 - M);
    const int count = int(std::nearbyint(std::ldexp(size, -step)));
    if (count == 0) return 0;
    // `count` is in units of 2^step; the code of a number is linear in it within a binade, and carries into the next.
    const int code = step == least ? count : ((step - least) << M) + count;
    return sign | u8(code > 0x7f ? 0x7f : code);
}

extern const f32* const FP8;  // values by code: e4m3fnuz
extern const f32* const BF8;  // e5m2fnuz

}  // namespace machine
