// Races, missing barriers, barriers that not all waves reach, and waves that wait for ever.
#include <hip/hip_runtime.h>

//: no_barrier_after_store | write race | 1 x 256 | in float 256; out float 256
extern "C" __global__ void no_barrier_after_store(const float* x, float* y) {
  __shared__ float t[256];
  t[threadIdx.x] = x[threadIdx.x];  // defect
  y[threadIdx.x] = t[255 - threadIdx.x];  // defect
}
//: no_barrier_before_reuse | write race | 1 x 256 | in float 1024; out float 256
extern "C" __global__ void no_barrier_before_reuse(const float* x, float* y) {
  __shared__ float t[256];
  float s = 0;
  for (int k = 0; k < 4; k++) {
    t[threadIdx.x] = x[k * 256 + threadIdx.x];  // defect
    __syncthreads();
    s += t[(threadIdx.x + 64) & 255];  // defect
  }
  y[threadIdx.x] = s;
}
//: reduction_without_barriers | write race | 1 x 256 | in float 256; out float 1
extern "C" __global__ void reduction_without_barriers(const float* x, float* y) {
  __shared__ float t[256];
  t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int w = 128; w; w /= 2)
    if (threadIdx.x < w)
      t[threadIdx.x] += t[threadIdx.x + w];  // defect
  if (threadIdx.x == 0) y[0] = t[0];
}
//: barrier_in_the_wrong_place | write race | 1 x 256 | in float 256; out float 256
extern "C" __global__ void barrier_in_the_wrong_place(const float* x, float* y) {
  __shared__ float t[256];
  __syncthreads();
  t[threadIdx.x] = x[threadIdx.x];  // defect
  y[threadIdx.x] = t[threadIdx.x ^ 128];  // defect
}
//: double_buffer_with_one_buffer | write race | 1 x 256 | in float 2048; out float 256
extern "C" __global__ void double_buffer_with_one_buffer(const float* x, float* y) {
  __shared__ float t[2][256];
  float s = 0;
  t[0][threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int k = 0; k < 8; k++) {
    if (k < 7) t[0][threadIdx.x] = x[(k + 1) * 256 + threadIdx.x];  // defect
    s += t[0][255 - threadIdx.x];  // defect
    __syncthreads();
  }
  y[threadIdx.x] = s;
}
//: leader_writes_all_read | write race | 1 x 256 | in float 256; out float 256
extern "C" __global__ void leader_writes_all_read(const float* x, float* y) {
  __shared__ float largest;
  if (threadIdx.x == 0) largest = x[0] * 2;  // defect
  y[threadIdx.x] = x[threadIdx.x] - largest;  // defect
}
//: total_read_too_early | write race | 1 x 256 | in int 256; out int 256
extern "C" __global__ void total_read_too_early(const int* x, int* y) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, x[threadIdx.x]);
  y[threadIdx.x] = total;  // defect
}
//: counter_cleared_without_barrier | write race | 1 x 256 | in int 256; out int 1
extern "C" __global__ void counter_cleared_without_barrier(const int* x, int* y) {
  __shared__ int total;
  if (threadIdx.x == 255) total = 0;  // defect
  atomicAdd(&total, x[threadIdx.x]);  // defect
  __syncthreads();
  if (threadIdx.x == 0) y[0] = total;
}
//: counts_without_atomics | write race | 1 x 256 | range int 256; out int 8
extern "C" __global__ void counts_without_atomics(const int* x, int* y) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  bins[x[threadIdx.x] & 7] += 1;  // defect
  __syncthreads();
  if (threadIdx.x < 8) y[threadIdx.x] = bins[threadIdx.x];
}
//: all_store_to_one_place | write race | 1 x 256 | in float 256; out float 1
extern "C" __global__ void all_store_to_one_place(const float* x, float* y) {
  __shared__ float one;
  one = x[threadIdx.x];  // defect
  __syncthreads();
  if (threadIdx.x == 0) y[0] = one;
}
//: lanes_of_one_wave_store_to_one_place | write race | 1 x 64 | in float 64; out float 1
extern "C" __global__ void lanes_of_one_wave_store_to_one_place(const float* x, float* y) {
  y[0] = x[threadIdx.x];  // defect
}
//: lanes_store_pairwise | write race | 1 x 64 | in float 64; out float 32
extern "C" __global__ void lanes_store_pairwise(const float* x, float* y) {
  y[threadIdx.x / 2] = x[threadIdx.x];  // defect
}
//: stride_that_overlaps | write race | 4 x 256 | in float 1024; out float 896
extern "C" __global__ void stride_that_overlaps(const float* x, float* y) {
  int i = blockIdx.x * 192 + threadIdx.x;
  if (i < 896) y[i] = x[blockIdx.x * 256 + threadIdx.x];  // defect
}
//: waves_write_through_memory | write race | 1 x 256 | in float 256; out float 256; work float 256
extern "C" __global__ void waves_write_through_memory(const float* x, float* y, float* w) {
  w[threadIdx.x] = x[threadIdx.x] * 2;  // defect
  y[threadIdx.x] = w[255 - threadIdx.x];  // defect
}
//: sum_without_atomics | write race | 8 x 64 | in float 512; zero float 1
extern "C" __global__ void sum_without_atomics(const float* x, float* y) {
  float s = x[blockIdx.x * 64 + threadIdx.x];
  for (int w = 32; w; w /= 2) s += __shfl_xor(s, w);
  if (threadIdx.x == 0)
    y[0] += s;  // defect
}
//: split_k_stores | write race | 4 x 64 | in float 256; out float 64
extern "C" __global__ void split_k_stores(const float* x, float* y) {
  y[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];  // defect
}
//: in_place_shift | write race | 4 x 64 | inout float 257
extern "C" __global__ void in_place_shift(float* x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = x[i + 1];  // defect
}
//: in_place_shift_backwards | write race | 4 x 64 | inout float 257
extern "C" __global__ void in_place_shift_backwards(float* x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v = x[i];  // defect
  x[i + 1] = v;  // defect
}
//: in_place_transpose | write race | 64 x 64 | inout float 4096
extern "C" __global__ void in_place_transpose(float* x) {
  float v = x[blockIdx.x * 64 + threadIdx.x];  // defect
  x[threadIdx.x * 64 + blockIdx.x] = v;  // defect
}
//: next_block_reads_result | write race | 4 x 64 | in float 256; out float 256
extern "C" __global__ void next_block_reads_result(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float before = blockIdx.x ? y[i - 64] : 0;  // defect
  y[i] = x[i] + before;  // defect
}
//: clear_and_add | write race | 4 x 64 | in int 256; out int 1
extern "C" __global__ void clear_and_add(const int* x, int* y) {
  if (threadIdx.x == 0) y[0] = 0;  // defect
  atomicAdd(y, x[blockIdx.x * 64 + threadIdx.x]);  // defect
}
//: relaxed_flag | write race | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void relaxed_flag(const float* x, float* y, float* w, int* flag) {
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x];  // defect
    if (threadIdx.x == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (!__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) __builtin_amdgcn_s_sleep(1);
    y[threadIdx.x] = w[threadIdx.x];  // defect
  }
}
//: flag_acquired_but_not_released | write race | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void flag_acquired_but_not_released(const float* x, float* y, float* w, int* flag) {
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x];  // defect
    if (threadIdx.x == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) __builtin_amdgcn_s_sleep(1);
    y[threadIdx.x] = w[threadIdx.x];  // defect
  }
}
//: flag_released_but_not_acquired | write race | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void flag_released_but_not_acquired(const float* x, float* y, float* w, int* flag) {
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x];  // defect
    if (threadIdx.x == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (!__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) __builtin_amdgcn_s_sleep(1);
    y[threadIdx.x] = w[threadIdx.x];  // defect
  }
}
//: flag_of_the_workgroup_only | write race | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void flag_of_the_workgroup_only(const float* x, float* y, float* w, int* flag) {
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x];  // defect
    if (threadIdx.x == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);  // defect
  } else {
    while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) __builtin_amdgcn_s_sleep(1);  // defect
    y[threadIdx.x] = w[threadIdx.x];  // defect
  }
}
//: flag_acquired_for_the_workgroup_only | write race | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void flag_acquired_for_the_workgroup_only(const float* x, float* y, float* w, int* flag) {
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x];  // defect
    if (threadIdx.x == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_WORKGROUP)) __builtin_amdgcn_s_sleep(1);  // defect
    y[threadIdx.x] = w[threadIdx.x];  // defect
  }
}
//: flag_that_is_stored_plainly | write race | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void flag_that_is_stored_plainly(const float* x, float* y, float* w, volatile int* flag) {
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x];  // defect
    if (threadIdx.x == 0) *flag = 1;
  } else {
    while (*flag == 0) __builtin_amdgcn_s_sleep(1);
    y[threadIdx.x] = w[threadIdx.x];  // defect
  }
}
//: fences_of_the_workgroup_only | write race | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void fences_of_the_workgroup_only(const float* x, float* y, float* w, volatile int* flag) {
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x];  // defect
    __threadfence_block();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    while (*flag == 0) __builtin_amdgcn_s_sleep(1);
    __threadfence_block();
    y[threadIdx.x] = w[threadIdx.x];  // defect
  }
}
//: last_block_of_the_workgroup_only | write race | 16 x 64 | in float 1024; out float 64; work float 1024; zero int 1
extern "C" __global__ void last_block_of_the_workgroup_only(const float* x, float* y, float* part, int* count) {
  int i = blockIdx.x * 64 + threadIdx.x, last = 0;
  part[i] = x[i] * 2;  // defect
  if (threadIdx.x == 0)
    last = __hip_atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_WORKGROUP) == 15;
  if (__shfl(last, 0)) {
    float all = 0;
    for (int b = 0; b < 16; b++) all += part[b * 64 + threadIdx.x];  // defect
    y[threadIdx.x] = all;
  }
}
//: last_block_without_fence | write race | 8 x 64 | in float 512; out float 1; work float 8; zero int 1
extern "C" __global__ void last_block_without_fence(const float* x, float* y, float* part, int* count) {
  float s = x[blockIdx.x * 64 + threadIdx.x];
  for (int w = 32; w; w /= 2) s += __shfl_xor(s, w);
  if (threadIdx.x == 0) {
    part[blockIdx.x] = s;  // defect
    if (atomicAdd(count, 1) == 7) {
      float all = 0;
      for (int b = 0; b < 8; b++) all += part[b];  // defect
      y[0] = all;
    }
  }
}
//: last_block_without_barrier | write race | 8 x 256 | in float 2048; out float 1; work float 2048; zero int 1
extern "C" __global__ void last_block_without_barrier(const float* x, float* y, float* part, int* count) {
  __shared__ int last;
  part[blockIdx.x * 256 + threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x] * 2;  // defect
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(count, 1) == 7;
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float all = 0;
    for (int b = 0; b < 2048; b++) all += part[b];  // defect
    y[0] = all;
  }
}
//: lock_without_release | write race | 4 x 64 | in float 256; zero float 64; zero int 1
extern "C" __global__ void lock_without_release(const float* x, float* y, int* lock) {
  if (threadIdx.x == 0)
    while (atomicCAS(lock, 0, 1)) __builtin_amdgcn_s_sleep(1);
  __syncthreads();
  y[threadIdx.x] += x[blockIdx.x * 64 + threadIdx.x];  // defect
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(lock, 0);
}
//: some_waves_skip_a_barrier | barrier mismatch | 1 x 256 | in float 256; out float 256
extern "C" __global__ void some_waves_skip_a_barrier(const float* x, float* y) {
  __shared__ float t[256];
  t[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 128)
    __syncthreads();  // defect
  float v = t[255 - threadIdx.x];  // defect
  __syncthreads();  // defect
  t[threadIdx.x] = v * 2;
  __syncthreads();  // defect
  y[threadIdx.x] = t[255 - threadIdx.x];
}
//: a_flag_that_nobody_sets | deadlock | 2 x 64 | out float 64; zero int 1
extern "C" __global__ void a_flag_that_nobody_sets(float* y, int* flag) {
  while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT))  // defect
    __builtin_amdgcn_s_sleep(1);
  y[threadIdx.x] = 1;
}
//: a_lock_that_is_never_released | deadlock | 4 x 64 | in float 256; zero float 64; zero int 1
extern "C" __global__ void a_lock_that_is_never_released(const float* x, float* y, int* lock) {
  if (threadIdx.x == 0)
    while (atomicCAS(lock, 0, 1)) __builtin_amdgcn_s_sleep(1);  // defect
  __syncthreads();
  y[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
}
//: lanes_of_a_wave_wait_for_each_other | deadlock | 1 x 64 | zero int 1; zero int 1
extern "C" __global__ void lanes_of_a_wave_wait_for_each_other(int* turn, int* y) {
  while (__hip_atomic_load(turn, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != int(threadIdx.x)) {}  // defect
  y[0] += 1;
  __hip_atomic_store(turn, int(threadIdx.x) + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}
//: blocks_wait_in_a_ring | deadlock | 4 x 64 | zero int 4; out int 4
extern "C" __global__ void blocks_wait_in_a_ring(int* done, int* y) {
  if (threadIdx.x == 0) {
    while (!__hip_atomic_load(done + (blockIdx.x + 1) % 4, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) {}  // defect
    y[blockIdx.x] = 1;
    __hip_atomic_store(done + blockIdx.x, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
}
//: grid_barrier_with_wrong_count | deadlock | 4 x 64 | zero int 1; out int 256
extern "C" __global__ void grid_barrier_with_wrong_count(int* arrived, int* y) {
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < 5) __builtin_amdgcn_s_sleep(1);  // defect
  }
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}
