// bf16 by the compiler's own type, under the names of ROCm 6's hip_bf16.h. Ours; used where the installed headers lack
// it. Not all of its functions are here.
#pragma once
#include <hip/hip_runtime.h>

#define KS_BOTH static inline __attribute__((host, device, always_inline, unused))

struct __hip_bfloat16_raw {
  unsigned short x;
};
struct __attribute__((aligned(2))) __hip_bfloat16 {
  union {
    unsigned short __x;
    unsigned short data;
  };
  __hip_bfloat16() = default;
  __host__ __device__ __hip_bfloat16(float f) : __x(__builtin_bit_cast(unsigned short, (__bf16)f)) {}
  __host__ __device__ __hip_bfloat16(double f) : __hip_bfloat16((float)f) {}
  __host__ __device__ __hip_bfloat16(int i) : __hip_bfloat16((float)i) {}
  __host__ __device__ __hip_bfloat16(const __hip_bfloat16_raw& r) : __x(r.x) {}
  __host__ __device__ operator float() const { return __builtin_bit_cast(float, (unsigned int)__x << 16); }
  __host__ __device__ operator __hip_bfloat16_raw() const { return {__x}; }
  __host__ __device__ __hip_bfloat16& operator+=(__hip_bfloat16 o) { return *this = (float)*this + (float)o; }
  __host__ __device__ __hip_bfloat16& operator-=(__hip_bfloat16 o) { return *this = (float)*this - (float)o; }
  __host__ __device__ __hip_bfloat16& operator*=(__hip_bfloat16 o) { return *this = (float)*this * (float)o; }
  __host__ __device__ __hip_bfloat16& operator/=(__hip_bfloat16 o) { return *this = (float)*this / (float)o; }
};
struct __attribute__((aligned(4))) __hip_bfloat162 {
  __hip_bfloat16 x, y;
};

KS_BOTH __hip_bfloat16 __float2bfloat16(float f) { return __hip_bfloat16(f); }
KS_BOTH __hip_bfloat16 __float2bfloat16_rn(float f) { return __hip_bfloat16(f); }
KS_BOTH __hip_bfloat16 __double2bfloat16(double d) { return __hip_bfloat16(d); }
KS_BOTH float __bfloat162float(__hip_bfloat16 b) { return (float)b; }
KS_BOTH __hip_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__hip_bfloat16(a), __hip_bfloat16(b)}; }
KS_BOTH __hip_bfloat162 __float22bfloat162_rn(float2 f) { return {__hip_bfloat16(f.x), __hip_bfloat16(f.y)}; }
KS_BOTH __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) { return {a, b}; }
KS_BOTH __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 a) { return {a, a}; }
KS_BOTH float2 __bfloat1622float2(__hip_bfloat162 b) { return float2{(float)b.x, (float)b.y}; }
KS_BOTH __hip_bfloat16 __low2bfloat16(__hip_bfloat162 b) { return b.x; }
KS_BOTH __hip_bfloat16 __high2bfloat16(__hip_bfloat162 b) { return b.y; }
KS_BOTH float __low2float(__hip_bfloat162 b) { return (float)b.x; }
KS_BOTH float __high2float(__hip_bfloat162 b) { return (float)b.y; }
KS_BOTH unsigned short __bfloat16_as_ushort(__hip_bfloat16 b) { return b.__x; }
KS_BOTH __hip_bfloat16 __ushort_as_bfloat16(unsigned short u) { return __hip_bfloat16(__hip_bfloat16_raw{u}); }
KS_BOTH __hip_bfloat16 __hadd(__hip_bfloat16 a, __hip_bfloat16 b) { return (float)a + (float)b; }
KS_BOTH __hip_bfloat16 __hsub(__hip_bfloat16 a, __hip_bfloat16 b) { return (float)a - (float)b; }
KS_BOTH __hip_bfloat16 __hmul(__hip_bfloat16 a, __hip_bfloat16 b) { return (float)a * (float)b; }
KS_BOTH __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
  return __builtin_fmaf((float)a, (float)b, (float)c);
}
#undef KS_BOTH
