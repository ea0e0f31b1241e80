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
// What the hardware of gfx942 does, for host code: FNUZ formats, to the nearest, ties to even; too large ones saturate.
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
  if (x != x) return 0x80;
  if (x == 0) return 0;  // 0x80 is not a number, and zero has no sign
  const float size = __builtin_fabsf(x);
  const unsigned int sign = x < 0 ? 0x80 : 0;
  if (size >= wide_on_host<E5M2>(0x7f)) return sign | 0x7f;
  int exponent = 0;
  (void)__builtin_frexpf(size, &exponent);
  exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
  const unsigned int whole = (unsigned int)__builtin_nearbyintf(__builtin_ldexpf(size, bits - exponent));
  const unsigned int byte = whole + ((unsigned int)(exponent + bias - 1) << bits);  // a carry raises the exponent
  return byte ? sign | byte : 0;
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
__host__ __device__ inline float wide(unsigned int byte) {
#ifdef __HIP_DEVICE_COMPILE__
  return E5M2 ? __builtin_amdgcn_cvt_f32_bf8(byte, 0) : __builtin_amdgcn_cvt_f32_fp8(byte, 0);
#else
  return wide_on_host<E5M2>(byte & 255);
#endif
}
template <bool E5M2>
struct scalar {
  __hip_fp8_storage_t __x;
  scalar() = default;
  __host__ __device__ scalar(float f) : __x((__hip_fp8_storage_t)packed<E5M2>(f, f, 0, false)) {}
  __host__ __device__ scalar(double f) : scalar((float)f) {}
  __host__ __device__ scalar(int i) : scalar((float)i) {}
  __host__ __device__ scalar(__half h) : scalar((float)h) {}
  __host__ __device__ operator float() const { return wide<E5M2>(__x); }
  __host__ __device__ operator __half() const { return __half((float)*this); }
};
template <bool E5M2>
struct pair {
  __hip_fp8x2_storage_t __x;
  pair() = default;
  __host__ __device__ pair(float2 f) : __x((__hip_fp8x2_storage_t)packed<E5M2>(f.x, f.y, 0, false)) {}
  __host__ __device__ operator float2() const { return float2{wide<E5M2>(__x & 255), wide<E5M2>(__x >> 8)}; }
};
template <bool E5M2>
struct quad {
  __hip_fp8x4_storage_t __x;
  quad() = default;
  __host__ __device__ quad(float4 f) : __x(packed<E5M2>(f.z, f.w, packed<E5M2>(f.x, f.y, 0, false), true)) {}
  __host__ __device__ operator float4() const {
    return float4{wide<E5M2>(__x & 255), wide<E5M2>((__x >> 8) & 255), wide<E5M2>((__x >> 16) & 255),
                  wide<E5M2>(__x >> 24)};
  }
};
}  // namespace ks_fp8

#define KS_TYPES(suffix)                                                    \
  struct __hip_fp8_e4m3##suffix : ks_fp8::scalar<false> { using scalar::scalar; };   \
  struct __hip_fp8_e5m2##suffix : ks_fp8::scalar<true> { using scalar::scalar; };    \
  struct __hip_fp8x2_e4m3##suffix : ks_fp8::pair<false> { using pair::pair; };       \
  struct __hip_fp8x2_e5m2##suffix : ks_fp8::pair<true> { using pair::pair; };        \
  struct __hip_fp8x4_e4m3##suffix : ks_fp8::quad<false> { using quad::quad; };       \
  struct __hip_fp8x4_e5m2##suffix : ks_fp8::quad<true> { using quad::quad; };
KS_TYPES()
KS_TYPES(_fnuz)
#undef KS_TYPES

__host__ __device__ inline __hip_fp8_storage_t __hip_cvt_float_to_fp8(float f, __hip_saturation_t,
                                                                      __hip_fp8_interpretation_t kind) {
  return (__hip_fp8_storage_t)(kind & 1 ? ks_fp8::packed<true>(f, f, 0, false) : ks_fp8::packed<false>(f, f, 0, false));
}
__host__ __device__ inline __hip_fp8x2_storage_t __hip_cvt_float2_to_fp8x2(float2 f, __hip_saturation_t,
                                                                           __hip_fp8_interpretation_t kind) {
  return (__hip_fp8x2_storage_t)(kind & 1 ? ks_fp8::packed<true>(f.x, f.y, 0, false)
                                          : ks_fp8::packed<false>(f.x, f.y, 0, false));
}
__host__ __device__ inline __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t x, __hip_fp8_interpretation_t kind) {
  return (__half_raw)__half(kind & 1 ? ks_fp8::wide<true>(x) : ks_fp8::wide<false>(x));
}
