// bf16 by the compiler's own type, under the names of ROCm 6's hip_bf16.h. Ours; used where the installed headers lack
// it. Not all of its functions are here.
#pragma once
#include <hip/hip_runtime.h>

#define KS_BOTH static inline __attribute__((host, device, always_inline, unused))

struct __hip_bfloat16_raw {
  unsigned short x;
};
struct __hip_bfloat162_raw {
  unsigned short x, y;
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
  __host__ __device__ __hip_bfloat16(double d) : __hip_bfloat16(toward_zero(d)) {}
  __host__ __device__ __hip_bfloat16(int i) : __hip_bfloat16((double)i) {}
  __host__ __device__ __hip_bfloat16(unsigned int i) : __hip_bfloat16((double)i) {}
  __host__ __device__ __hip_bfloat16(short i) : __hip_bfloat16((float)i) {}
  __host__ __device__ __hip_bfloat16(unsigned short i) : __hip_bfloat16((float)i) {}
  __host__ __device__ __hip_bfloat16(const __hip_bfloat16_raw& r) : __x(r.x) {}
  __host__ __device__ operator float() const { return __builtin_bit_cast(float, (unsigned int)__x << 16); }
  __host__ __device__ operator __hip_bfloat16_raw() const { return {__x}; }

 private:
  // A number that was rounded away from zero is made odd below: what follows rounds it once, not twice.
  __host__ __device__ static float toward_zero(double d) {
    const float f = (float)d;
    if (!(d > 0 ? f > d : f < d)) return f;
    return __builtin_bit_cast(float, (__builtin_bit_cast(unsigned int, f) - 1) | 1);
  }
};
struct __attribute__((aligned(4))) __hip_bfloat162 {
  __hip_bfloat16 x, y;
  __hip_bfloat162() = default;
  __host__ __device__ __hip_bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) : x(a), y(b) {}
  __host__ __device__ __hip_bfloat162(const __hip_bfloat162_raw& r)
      : x(__hip_bfloat16_raw{r.x}), y(__hip_bfloat16_raw{r.y}) {}
  __host__ __device__ operator __hip_bfloat162_raw() const { return {x.__x, y.__x}; }
  __host__ __device__ operator float2() const { return float2{(float)x, (float)y}; }
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
KS_BOTH int __hisinf(__hip_bfloat16 a) { return (a.__x & 0x7fff) == 0x7f80 ? (a.__x & 0x8000 ? -1 : 1) : 0; }
KS_BOTH short __bfloat16_as_short(__hip_bfloat16 b) { return (short)b.__x; }
KS_BOTH __hip_bfloat16 __short_as_bfloat16(short s) { return __ushort_as_bfloat16((unsigned short)s); }
// Each result is rounded: sums of three are rounded twice, as ROCm 6's are.
#define KS_OPERATOR(sign, one)                                                                                    \
  KS_BOTH __hip_bfloat16 operator sign(__hip_bfloat16 a, __hip_bfloat16 b) { return one(a, b); }                  \
  KS_BOTH __hip_bfloat16& operator sign##=(__hip_bfloat16& a, __hip_bfloat16 b) { return a = one(a, b); }         \
  KS_BOTH __hip_bfloat162 operator sign(__hip_bfloat162 a, __hip_bfloat162 b) {                                   \
    return {one(a.x, b.x), one(a.y, b.y)};                                                                        \
  }                                                                                                               \
  KS_BOTH __hip_bfloat162& operator sign##=(__hip_bfloat162& a, __hip_bfloat162 b) { return a = a sign b; }
KS_OPERATOR(+, __hadd)
KS_OPERATOR(-, __hsub)
KS_OPERATOR(*, __hmul)
KS_OPERATOR(/, __hdiv)
#undef KS_OPERATOR
KS_BOTH __hip_bfloat16 operator+(__hip_bfloat16 a) { return a; }
KS_BOTH __hip_bfloat16 operator-(__hip_bfloat16 a) { return __hneg(a); }
KS_BOTH __hip_bfloat16& operator++(__hip_bfloat16& a) { return a += __hip_bfloat16(1.0f); }
KS_BOTH __hip_bfloat16& operator--(__hip_bfloat16& a) { return a -= __hip_bfloat16(1.0f); }
KS_BOTH __hip_bfloat16 operator++(__hip_bfloat16& a, int) {
  const __hip_bfloat16 old = a;
  return ++a, old;
}
KS_BOTH __hip_bfloat16 operator--(__hip_bfloat16& a, int) {
  const __hip_bfloat16 old = a;
  return --a, old;
}
// Of two numbers and of pairs, as numbers or as one answer; those with a u are true where one is not a number.
#define KS_COMPARE(name, sign, opposite)                                                                             \
  KS_BOTH bool __h##name(__hip_bfloat16 a, __hip_bfloat16 b) { return (float)a sign(float) b; }                      \
  KS_BOTH bool __h##name##u(__hip_bfloat16 a, __hip_bfloat16 b) { return !((float)a opposite(float) b); }            \
  KS_BOTH bool __hb##name##2(__hip_bfloat162 a, __hip_bfloat162 b) {                                                 \
    return __h##name(a.x, b.x) && __h##name(a.y, b.y);                                                               \
  }                                                                                                                  \
  KS_BOTH bool __hb##name##u2(__hip_bfloat162 a, __hip_bfloat162 b) {                                                \
    return __h##name##u(a.x, b.x) && __h##name##u(a.y, b.y);                                                         \
  }                                                                                                                  \
  KS_BOTH __hip_bfloat162 __h##name##2(__hip_bfloat162 a, __hip_bfloat162 b) {                                       \
    return {__hip_bfloat16((float)__h##name(a.x, b.x)), __hip_bfloat16((float)__h##name(a.y, b.y))};                 \
  }
KS_COMPARE(eq, ==, !=)
KS_COMPARE(ne, !=, ==)
KS_COMPARE(lt, <, >=)
KS_COMPARE(le, <=, >)
KS_COMPARE(gt, >, <=)
KS_COMPARE(ge, >=, <)
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
#undef KS_TWICE
KS_BOTH __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
KS_BOTH __hip_bfloat162 __hneg2(__hip_bfloat162 a) { return {__hneg(a.x), __hneg(a.y)}; }
KS_BOTH __hip_bfloat162 __habs2(__hip_bfloat162 a) { return {__habs(a.x), __habs(a.y)}; }
KS_BOTH __hip_bfloat162 __low2bfloat162(__hip_bfloat162 a) { return {a.x, a.x}; }
KS_BOTH __hip_bfloat162 __high2bfloat162(__hip_bfloat162 a) { return {a.y, a.y}; }
KS_BOTH __hip_bfloat162 __lowhigh2highlow(__hip_bfloat162 a) { return {a.y, a.x}; }
KS_BOTH __hip_bfloat162 __lows2bfloat162(__hip_bfloat162 a, __hip_bfloat162 b) { return {a.x, b.x}; }
KS_BOTH __hip_bfloat162 __highs2bfloat162(__hip_bfloat162 a, __hip_bfloat162 b) { return {a.y, b.y}; }
KS_BOTH __hip_bfloat162 __hisnan2(__hip_bfloat162 a) { return __hne2(a, a); }
KS_BOTH __hip_bfloat162 __float2bfloat162_rn(float f) { return {__hip_bfloat16(f), __hip_bfloat16(f)}; }

#define KS_MATH(name, of_float)                                                            \
  __device__ inline __hip_bfloat16 h##name(__hip_bfloat16 a) { return of_float((float)a); } \
  __device__ inline __hip_bfloat162 h2##name(__hip_bfloat162 a) { return {h##name(a.x), h##name(a.y)}; }
KS_MATH(ceil, __builtin_ceilf)
KS_MATH(floor, __builtin_floorf)
KS_MATH(rint, __builtin_rintf)
KS_MATH(trunc, __builtin_truncf)
KS_MATH(rcp, 1.0f /)
KS_MATH(sqrt, __ocml_sqrt_f32)
KS_MATH(rsqrt, __ocml_rsqrt_f32)
KS_MATH(exp, __ocml_exp_f32)
KS_MATH(exp2, __ocml_exp2_f32)
KS_MATH(exp10, __ocml_exp10_f32)
KS_MATH(log, __ocml_log_f32)
KS_MATH(log2, __ocml_log2_f32)
KS_MATH(log10, __ocml_log10_f32)
KS_MATH(sin, __ocml_sin_f32)
KS_MATH(cos, __ocml_cos_f32)
#undef KS_MATH

// In one instruction, of memory that is the device's own.
__device__ inline __hip_bfloat162 unsafeAtomicAdd(__hip_bfloat162* to, __hip_bfloat162 value) {
  typedef short Pair __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(__hip_bfloat162, __builtin_amdgcn_flat_atomic_fadd_v2bf16((Pair*)to, __builtin_bit_cast(Pair, value)));
}

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
