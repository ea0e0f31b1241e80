// The installed hip_runtime.h, and what later ones have besides: the *_sync functions with 64-bit masks (ROCm 6), votes
// and sums of equal lanes (ROCm 7). Ours; used where the installed headers are older.
#pragma once
// Debian's name an intrinsic for these two that LLVM 17 and later lack.
#define atomicInc ks_without_atomicInc
#define atomicDec ks_without_atomicDec
#include_next <hip/hip_runtime.h>
#include <type_traits>
#undef atomicInc
#undef atomicDec

#if HIP_VERSION_MAJOR < 6
__device__ inline unsigned int atomicInc(unsigned int* to, unsigned int most) {
  return __builtin_amdgcn_atomic_inc32(to, most, __ATOMIC_RELAXED, "agent");
}
__device__ inline unsigned int atomicDec(unsigned int* to, unsigned int most) {
  return __builtin_amdgcn_atomic_dec32(to, most, __ATOMIC_RELAXED, "agent");
}
#define KS_EXTREME(name, signed_name)                                                                        \
  __device__ inline long long atomic##name(long long* to, long long value) {                                \
    return __hip_atomic_fetch_##signed_name(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);         \
  }                                                                                                         \
  __device__ inline float unsafeAtomic##name(float* to, float value) { return atomic##name(to, value); }    \
  __device__ inline double unsafeAtomic##name(double* to, double value) { return atomic##name(to, value); }
KS_EXTREME(Min, min)
KS_EXTREME(Max, max)
#undef KS_EXTREME
// Flags of ROCm 6's host functions.
#define hipHostAllocDefault 0x0
#define hipHostAllocPortable 0x1
#define hipHostAllocMapped 0x2
#define hipHostAllocWriteCombined 0x4
#define hipHostRegisterReadOnly 0x8
#define hipDeviceMallocUncached 0x3
#define hipDeviceMallocContiguous 0x4
#define hipEventDisableSystemFence 0x20000000
// ROCm's functions refuse a mask that is not 64 bits wide, as 0xffffffff is: a wave of 64 lanes would lose half of it.
template <typename Mask>
__device__ constexpr unsigned long long ks_mask(Mask mask) {
  static_assert(std::is_integral<Mask>::value && sizeof(Mask) == 8,
                "the mask of a *_sync function must be a 64-bit integer: a wave has 64 lanes");
  return (unsigned long long)mask;
}
template <typename Mask, typename T>
__device__ inline T __shfl_sync(Mask mask, T var, int lane, int width = 64) {
  ks_mask(mask);
  return __shfl(var, lane, width);
}
template <typename Mask, typename T>
__device__ inline T __shfl_up_sync(Mask mask, T var, unsigned int delta, int width = 64) {
  ks_mask(mask);
  return __shfl_up(var, delta, width);
}
template <typename Mask, typename T>
__device__ inline T __shfl_down_sync(Mask mask, T var, unsigned int delta, int width = 64) {
  ks_mask(mask);
  return __shfl_down(var, delta, width);
}
template <typename Mask, typename T>
__device__ inline T __shfl_xor_sync(Mask mask, T var, int lanes, int width = 64) {
  ks_mask(mask);
  return __shfl_xor(var, lanes, width);
}
template <typename Mask>
__device__ inline unsigned long long __ballot_sync(Mask mask, int p) {
  return __ballot(p) & ks_mask(mask);
}
template <typename Mask>
__device__ inline int __any_sync(Mask mask, int p) {
  return __ballot_sync(mask, p) != 0;
}
template <typename Mask>
__device__ inline int __all_sync(Mask mask, int p) {
  return __ballot_sync(mask, !p) == 0;
}
__device__ inline unsigned long long __activemask() { return __ballot(1); }
template <typename Mask, typename T>
__device__ inline unsigned long long __match_any_sync(Mask mask, T value) {
  static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8),
                "__match_any_sync compares numbers of 4 or 8 bytes");
  unsigned long long equal = 0;
  for (unsigned long long left = ks_mask(mask) & __ballot(1); left;) {
    const unsigned long long same = __ballot(__shfl(value, __builtin_ctzll(left)) == value);
    if (same >> __lane_id() & 1) equal = same;
    left &= ~__ballot(equal != 0);
  }
  return equal & mask;
}
template <typename Mask, typename T>
__device__ inline unsigned long long __match_all_sync(Mask mask, T value, int* all) {
  static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8),
                "__match_all_sync compares numbers of 4 or 8 bytes");
  *all = __all_sync(mask, __shfl(value, __builtin_ctzll(mask)) == value);
  return *all ? mask : 0;
}
#define KS_REDUCE(name, expression)                                                                \
  template <typename Mask, typename T>                                                              \
  __device__ inline T __reduce_##name##_sync(Mask mask, T x) {                                      \
    T a = x;                                                                                        \
    bool first = true;                                                                              \
    for (unsigned long long left = ks_mask(mask) & __ballot(1); left; left &= left - 1, first = false) { \
      const T b = __shfl(x, __builtin_ctzll(left));                                                 \
      a = first ? b : (T)(expression);                                                              \
    }                                                                                               \
    return a;                                                                                       \
  }
KS_REDUCE(add, a + b)
KS_REDUCE(min, a < b ? a : b)
KS_REDUCE(max, a > b ? a : b)
KS_REDUCE(and, a & b)
KS_REDUCE(or, a | b)
KS_REDUCE(xor, a ^ b)
#undef KS_REDUCE
__device__ inline void __syncwarp() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}
template <typename Mask>
__device__ inline void __syncwarp(Mask mask) {
  ks_mask(mask);
  __syncwarp();
}
#endif
