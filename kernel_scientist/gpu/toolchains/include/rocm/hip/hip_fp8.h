// fp8 by the hardware's conversions, under the names of ROCm 6's hip_fp8.h: FNUZ formats on gfx942, OCP ones elsewhere,
// as the compiler's builtins have them. Ours; used where the installed headers lack it. Not all of its functions are
// here, and a conversion to the format that the hardware has not is the other format's: see the findings.
#pragma once
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned int __hip_fp8x4_storage_t;
enum __hip_saturation_t { __HIP_NOSAT = 0, __HIP_SATFINITE = 1 };
enum __hip_fp8_interpretation_t { __HIP_E4M3 = 0, __HIP_E5M2 = 1, __HIP_E4M3_FNUZ = 2, __HIP_E5M2_FNUZ = 3 };

namespace ks_fp8 {
// What the hardware of gfx942 does, for host code: FNUZ formats, to the nearest, ties to even; too large ones become NaN.
template <bool E5M2>
inline float wide_on_host(unsigned int byte) {
  constexpr int bits = E5M2 ? 2 : 3, bias = E5M2 ? 16 : 8;
  if (byte == 0x80) return __builtin_nanf("");
  const int exponent = (byte & 0x7f) >> bits, fraction = byte & ((1 << bits) - 1);
  const int whole = exponent ? fraction + (1 << bits) : fraction;
  const float size = __builtin_ldexpf((float)whole, (exponent ? exponent : 1) - bias - bits);
  return byte & 0x80 ? -size : size;
}
template <bool E5M2>
inline unsigned int narrow_on_host(float x) {
  constexpr int bits = E5M2 ? 2 : 3, bias = E5M2 ? 16 : 8;
  const float size = __builtin_fabsf(x);
  if (!(size < __builtin_inff())) return 0x80;
  if (x == 0) return 0;  // 0x80 is not a number, and zero has no sign
  const unsigned int sign = x < 0 ? 0x80 : 0;
  int exponent = 0;
  (void)__builtin_frexpf(size, &exponent);
  exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
  const unsigned int whole = (unsigned int)__builtin_nearbyintf(__builtin_ldexpf(size, bits - exponent));
  const unsigned int byte = whole + ((unsigned int)(exponent + bias - 1) << bits);  // a carry raises the exponent
  return byte > 0x7f ? 0x80 : byte ? sign | byte : 0;
}
// A finite number, within what the format has: neither the hardware nor the functions above saturate.
template <bool E5M2>
__host__ __device__ inline float clipped(float x) {
#ifdef __gfx950__
  constexpr float most = E5M2 ? 57344 : 448;
#else
  constexpr float most = E5M2 ? 57344 : 240;
#endif
  if (!(__builtin_fabsf(x) < __builtin_inff())) return x;
  return __builtin_fmaxf(-most, __builtin_fminf(most, x));
}
template <bool E5M2>
__host__ __device__ inline unsigned int packed(float a, float b, unsigned int old, bool high) {
#ifdef __HIP_DEVICE_COMPILE__
  if (E5M2)
    return high ? __builtin_amdgcn_cvt_pk_bf8_f32(a, b, old, true) : __builtin_amdgcn_cvt_pk_bf8_f32(a, b, old, false);
  return high ? __builtin_amdgcn_cvt_pk_fp8_f32(a, b, old, true) : __builtin_amdgcn_cvt_pk_fp8_f32(a, b, old, false);
#else
  const unsigned int both = narrow_on_host<E5M2>(a) | narrow_on_host<E5M2>(b) << 8;
  return high ? (old & 0xffff) | both << 16 : (old & 0xffff0000) | both;
#endif
}
template <bool E5M2>
__host__ __device__ inline unsigned int saturated(float a, float b, unsigned int old, bool high) {
  return packed<E5M2>(clipped<E5M2>(a), clipped<E5M2>(b), old, high);
}
template <bool E5M2>
__host__ __device__ inline float wide(unsigned int byte) {
#ifdef __HIP_DEVICE_COMPILE__
  return E5M2 ? __builtin_amdgcn_cvt_f32_bf8(byte, 0) : __builtin_amdgcn_cvt_f32_fp8(byte, 0);
#else
  return wide_on_host<E5M2>(byte & 255);
#endif
}
template <bool E5M2>
struct scalar {
  static constexpr __hip_saturation_t __default_saturation = __HIP_SATFINITE;
  static constexpr unsigned int __we = E5M2 ? 5 : 4, __wm = E5M2 ? 2 : 3;
  __hip_fp8_storage_t __x;
  scalar() = default;
  __host__ __device__ scalar(float f) : __x((__hip_fp8_storage_t)saturated<E5M2>(f, f, 0, false)) {}
  __host__ __device__ scalar(double f) : scalar((float)f) {}
  __host__ __device__ scalar(int i) : scalar((float)i) {}
  __host__ __device__ scalar(__half h) : scalar((float)h) {}
  __host__ __device__ scalar(__hip_bfloat16 b) : scalar((float)b) {}
  __host__ __device__ operator float() const { return wide<E5M2>(__x); }
  __host__ __device__ operator __half() const { return __half((float)*this); }
};
template <bool E5M2>
struct pair {
  __hip_fp8x2_storage_t __x;
  pair() = default;
  __host__ __device__ pair(float2 f) : __x((__hip_fp8x2_storage_t)saturated<E5M2>(f.x, f.y, 0, false)) {}
  __host__ __device__ operator float2() const { return float2{wide<E5M2>(__x & 255), wide<E5M2>(__x >> 8)}; }
};
template <bool E5M2>
struct quad {
  __hip_fp8x4_storage_t __x;
  quad() = default;
  __host__ __device__ quad(float4 f) : __x(saturated<E5M2>(f.z, f.w, saturated<E5M2>(f.x, f.y, 0, false), true)) {}
  __host__ __device__ operator float4() const {
    return float4{wide<E5M2>(__x & 255), wide<E5M2>((__x >> 8) & 255), wide<E5M2>((__x >> 16) & 255),
                  wide<E5M2>(__x >> 24)};
  }
};
}  // namespace ks_fp8

#define KS_TYPE(name, shape, wide, kind)                                     \
  struct name : ks_fp8::shape<wide> {                                        \
    using ks_fp8::shape<wide>::shape;                                        \
    static constexpr __hip_fp8_interpretation_t __default_interpret = kind;  \
  };
#define KS_TYPES(suffix, kind)                                         \
  KS_TYPE(__hip_fp8_e4m3##suffix, scalar, false, __HIP_E4M3##kind)     \
  KS_TYPE(__hip_fp8_e5m2##suffix, scalar, true, __HIP_E5M2##kind)      \
  KS_TYPE(__hip_fp8x2_e4m3##suffix, pair, false, __HIP_E4M3##kind)     \
  KS_TYPE(__hip_fp8x2_e5m2##suffix, pair, true, __HIP_E5M2##kind)      \
  KS_TYPE(__hip_fp8x4_e4m3##suffix, quad, false, __HIP_E4M3##kind)     \
  KS_TYPE(__hip_fp8x4_e5m2##suffix, quad, true, __HIP_E5M2##kind)
KS_TYPES(, )
KS_TYPES(_fnuz, _FNUZ)
#undef KS_TYPE
#undef KS_TYPES

namespace ks_fp8 {
__host__ __device__ inline unsigned int converted(float a, float b, __hip_saturation_t limit, __hip_fp8_interpretation_t kind) {
  const bool saturates = limit == __HIP_SATFINITE;
  if (kind & 1) return saturates ? saturated<true>(a, b, 0, false) : packed<true>(a, b, 0, false);
  return saturates ? saturated<false>(a, b, 0, false) : packed<false>(a, b, 0, false);
}
__host__ __device__ inline float widened(unsigned int byte, __hip_fp8_interpretation_t kind) {
  return kind & 1 ? wide<true>(byte) : wide<false>(byte);
}
}  // namespace ks_fp8
#define KS_CONVERT(from, type, number)                                                                              \
  __host__ __device__ inline __hip_fp8_storage_t __hip_cvt_##from##_to_fp8(type x, __hip_saturation_t limit,        \
                                                                           __hip_fp8_interpretation_t kind) {       \
    return (__hip_fp8_storage_t)ks_fp8::converted((float)number(x), (float)number(x), limit, kind);                 \
  }
KS_CONVERT(float, float, float)
KS_CONVERT(double, double, double)
KS_CONVERT(halfraw, __half_raw, __half)
KS_CONVERT(bfloat16raw, __hip_bfloat16_raw, __hip_bfloat16)
#undef KS_CONVERT
#define KS_CONVERT(from, type, first, second)                                                                       \
  __host__ __device__ inline __hip_fp8x2_storage_t __hip_cvt_##from##_to_fp8x2(type x, __hip_saturation_t limit,    \
                                                                               __hip_fp8_interpretation_t kind) {   \
    return (__hip_fp8x2_storage_t)ks_fp8::converted((float)first, (float)second, limit, kind);                      \
  }
KS_CONVERT(float2, float2, x.x, x.y)
KS_CONVERT(double2, double2, x.x, x.y)
KS_CONVERT(halfraw2, __half2_raw, x.data.x, x.data.y)
KS_CONVERT(bfloat16raw2, __hip_bfloat162_raw, __hip_bfloat162(x).x, __hip_bfloat162(x).y)
#undef KS_CONVERT
__host__ __device__ inline __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t x, __hip_fp8_interpretation_t kind) {
  return (__half_raw)__half(ks_fp8::widened(x, kind));
}
__host__ __device__ inline __half2_raw __hip_cvt_fp8x2_to_halfraw2(__hip_fp8x2_storage_t x,
                                                                   __hip_fp8_interpretation_t kind) {
  return (__half2_raw)__half2(__half(ks_fp8::widened(x & 255, kind)), __half(ks_fp8::widened(x >> 8, kind)));
}
