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
  __device__ __hip_bfloat16(float f) : __x(__builtin_bit_cast(unsigned short, (__bf16)f)) {}
  // On the host (__bf16)f would be a call of the compiler's own library, which is not linked. To nearest, ties to even.
  __host__ __hip_bfloat16(float f) {
    const unsigned int bits = __builtin_bit_cast(unsigned int, f);
    __x = f != f ? (bits >> 16) | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
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
KS_BOTH __hip_bfloat16 __hdiv(__hip_bfloat16 a, __hip_bfloat16 b) { return (float)a / (float)b; }
KS_BOTH __hip_bfloat16 __hneg(__hip_bfloat16 a) { return __ushort_as_bfloat16(a.__x ^ 0x8000); }
KS_BOTH __hip_bfloat16 __habs(__hip_bfloat16 a) { return __ushort_as_bfloat16(a.__x & 0x7fff); }
KS_BOTH __hip_bfloat16 __hmax(__hip_bfloat16 a, __hip_bfloat16 b) { return __builtin_fmaxf((float)a, (float)b); }
KS_BOTH __hip_bfloat16 __hmin(__hip_bfloat16 a, __hip_bfloat16 b) { return __builtin_fminf((float)a, (float)b); }
KS_BOTH bool __hisnan(__hip_bfloat16 a) { return (a.__x & 0x7fff) > 0x7f80; }
#define KS_COMPARE(name, sign) \
  KS_BOTH bool name(__hip_bfloat16 a, __hip_bfloat16 b) { return (float)a sign(float) b; }
KS_COMPARE(__heq, ==)
KS_COMPARE(__hne, !=)
KS_COMPARE(__hlt, <)
KS_COMPARE(__hle, <=)
KS_COMPARE(__hgt, >)
KS_COMPARE(__hge, >=)
#undef KS_COMPARE
#define KS_TWICE(two, one)                                                \
  KS_BOTH __hip_bfloat162 two(__hip_bfloat162 a, __hip_bfloat162 b) {     \
    return {one(a.x, b.x), one(a.y, b.y)};                                \
  }
KS_TWICE(__hadd2, __hadd)
KS_TWICE(__hsub2, __hsub)
KS_TWICE(__hmul2, __hmul)
KS_TWICE(__h2div, __hdiv)
KS_TWICE(__hmax2, __hmax)
KS_TWICE(__hmin2, __hmin)
KS_TWICE(operator+, __hadd)
KS_TWICE(operator-, __hsub)
KS_TWICE(operator*, __hmul)
KS_TWICE(operator/, __hdiv)
#undef KS_TWICE
KS_BOTH __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
KS_BOTH __hip_bfloat162 __hneg2(__hip_bfloat162 a) { return {__hneg(a.x), __hneg(a.y)}; }
KS_BOTH __hip_bfloat162 __habs2(__hip_bfloat162 a) { return {__habs(a.x), __habs(a.y)}; }
KS_BOTH __hip_bfloat162 __low2bfloat162(__hip_bfloat162 a) { return {a.x, a.x}; }
KS_BOTH __hip_bfloat162 __high2bfloat162(__hip_bfloat162 a) { return {a.y, a.y}; }
KS_BOTH __hip_bfloat162 __float2bfloat162_rn(float f) { return {__hip_bfloat16(f), __hip_bfloat16(f)}; }

// Lanes exchange the bits.
#define KS_SHUFFLE(name, number)                                                                          \
  __device__ inline __hip_bfloat16 name(__hip_bfloat16 value, number lane, int width = 64) {              \
    return __ushort_as_bfloat16((unsigned short)name((unsigned int)value.__x, lane, width));              \
  }                                                                                                       \
  __device__ inline __hip_bfloat162 name(__hip_bfloat162 value, number lane, int width = 64) {            \
    return __builtin_bit_cast(__hip_bfloat162, name(__builtin_bit_cast(int, value), lane, width));        \
  }
KS_SHUFFLE(__shfl, int)
KS_SHUFFLE(__shfl_xor, int)
KS_SHUFFLE(__shfl_up, unsigned int)
KS_SHUFFLE(__shfl_down, unsigned int)
#undef KS_SHUFFLE
#undef KS_BOTH
