// The installed hip_runtime.h, and what ROCm 6 has besides: the *_sync functions with 64-bit masks. Ours; used where
// the installed headers are older.
#pragma once
#include_next <hip/hip_runtime.h>

#if HIP_VERSION_MAJOR < 6
template <typename T>
__device__ inline T __shfl_sync(unsigned long long, T var, int lane, int width = 64) {
  return __shfl(var, lane, width);
}
template <typename T>
__device__ inline T __shfl_up_sync(unsigned long long, T var, unsigned int delta, int width = 64) {
  return __shfl_up(var, delta, width);
}
template <typename T>
__device__ inline T __shfl_down_sync(unsigned long long, T var, unsigned int delta, int width = 64) {
  return __shfl_down(var, delta, width);
}
template <typename T>
__device__ inline T __shfl_xor_sync(unsigned long long, T var, int mask, int width = 64) {
  return __shfl_xor(var, mask, width);
}
__device__ inline unsigned long long __ballot_sync(unsigned long long mask, int p) { return __ballot(p) & mask; }
__device__ inline int __any_sync(unsigned long long mask, int p) { return __ballot_sync(mask, p) != 0; }
__device__ inline int __all_sync(unsigned long long mask, int p) { return __ballot_sync(mask, !p) == 0; }
__device__ inline unsigned long long __activemask() { return __ballot(1); }
__device__ inline void __syncwarp(unsigned long long = ~0ull) {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}
#endif
