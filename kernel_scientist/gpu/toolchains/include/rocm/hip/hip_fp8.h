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
template <bool E5M2>
__host__ __device__ inline unsigned int packed(float a, float b, unsigned int old, bool high) {
#ifdef __HIP_DEVICE_COMPILE__
  if (E5M2)
    return high ? __builtin_amdgcn_cvt_pk_bf8_f32(a, b, old, true) : __builtin_amdgcn_cvt_pk_bf8_f32(a, b, old, false);
  return high ? __builtin_amdgcn_cvt_pk_fp8_f32(a, b, old, true) : __builtin_amdgcn_cvt_pk_fp8_f32(a, b, old, false);
#else
  return 0;  // host code is parsed, never run
#endif
}
template <bool E5M2>
__host__ __device__ inline float wide(unsigned int byte) {
#ifdef __HIP_DEVICE_COMPILE__
  return E5M2 ? __builtin_amdgcn_cvt_f32_bf8(byte, 0) : __builtin_amdgcn_cvt_f32_fp8(byte, 0);
#else
  return 0;
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
