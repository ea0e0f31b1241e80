// The installed hip_fp16.h, and what ROCm 6's has besides: minima, maxima, and halves that lanes exchange. Ours; used where
// the installed headers are older.
#pragma once
#include <hip/hip_runtime.h>
#include_next <hip/hip_fp16.h>

#if HIP_VERSION_MAJOR < 6
__device__ inline __half __hmax(__half a, __half b) { return __float2half(__builtin_fmaxf(__half2float(a), __half2float(b))); }
__device__ inline __half __hmin(__half a, __half b) { return __float2half(__builtin_fminf(__half2float(a), __half2float(b))); }
__device__ inline __half2 __hmax2(__half2 a, __half2 b) {
  return __halves2half2(__hmax(__low2half(a), __low2half(b)), __hmax(__high2half(a), __high2half(b)));
}
__device__ inline __half2 __hmin2(__half2 a, __half2 b) {
  return __halves2half2(__hmin(__low2half(a), __low2half(b)), __hmin(__high2half(a), __high2half(b)));
}
__device__ inline __half __hmax_nan(__half a, __half b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); }
__device__ inline __half __hmin_nan(__half a, __half b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); }
// In one instruction, of memory that is the device's own.
__device__ inline __half2 unsafeAtomicAdd(__half2* to, __half2 value) {
  typedef _Float16 Pair __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(__half2, __builtin_amdgcn_flat_atomic_fadd_v2f16((Pair*)to, __builtin_bit_cast(Pair, value)));
}
#define KS_SHUFFLE(name, number)                                                                  \
  __device__ inline __half name(__half value, number lane, int width = 64) {                      \
    return __ushort_as_half((unsigned short)name((unsigned int)__half_as_ushort(value), lane, width)); \
  }                                                                                               \
  __device__ inline __half2 name(__half2 value, number lane, int width = 64) {                    \
    return __builtin_bit_cast(__half2, name(__builtin_bit_cast(int, value), lane, width));        \
  }
KS_SHUFFLE(__shfl, int)
KS_SHUFFLE(__shfl_xor, int)
KS_SHUFFLE(__shfl_up, unsigned int)
KS_SHUFFLE(__shfl_down, unsigned int)
#undef KS_SHUFFLE
#endif
