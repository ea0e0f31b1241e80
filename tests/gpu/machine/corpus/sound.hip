// Honest kernels: nothing is to be found.
#include <hip/hip_runtime.h>

//: copy | | 4 x 256 | in float 1000; out float 1000; int 1000
extern "C" __global__ void copy(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
//: tree_reduction | | 4 x 256 | in float 1000; out float 4; int 1000
extern "C" __global__ void tree_reduction(const float* x, float* y, int n) {
  __shared__ float t[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  t[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  for (int w = 128; w; w /= 2) {
    if (threadIdx.x < w) t[threadIdx.x] += t[threadIdx.x + w];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = t[0];
}
//: last_wave_without_barriers | | 1 x 256 | in float 256; out float 1
extern "C" __global__ void last_wave_without_barriers(const float* x, float* y) {
  __shared__ volatile float t[256];
  t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int w = 128; w > 32; w /= 2) {
    if (threadIdx.x < w) t[threadIdx.x] += t[threadIdx.x + w];
    __syncthreads();
  }
  if (threadIdx.x < 32)
    for (int w = 32; w; w /= 2) t[threadIdx.x] += t[threadIdx.x + w];
  if (threadIdx.x == 0) y[0] = t[0];
}
//: split_k_with_atomics | | 8 x 64 | in float 512; zero float 64
extern "C" __global__ void split_k_with_atomics(const float* x, float* y) {
  atomicAdd(y + threadIdx.x, x[blockIdx.x * 64 + threadIdx.x]);
}
//: shuffles | | 1 x 256 | in float 256; out float 4
extern "C" __global__ void shuffles(const float* x, float* y) {
  float s = x[threadIdx.x];
  for (int w = 32; w; w /= 2) s += __shfl_down(s, w);
  if (threadIdx.x % 64 == 0) y[threadIdx.x / 64] = s;
}
//: dpp | | 1 x 64 | in int 64; out int 1
extern "C" __global__ void dpp(const int* x, int* y) {
  int s = x[threadIdx.x];
  s += __builtin_amdgcn_update_dpp(0, s, 0x111, 0xf, 0xf, true);
  s += __builtin_amdgcn_update_dpp(0, s, 0x112, 0xf, 0xf, true);
  s += __builtin_amdgcn_update_dpp(0, s, 0x114, 0xf, 0xf, true);
  s += __builtin_amdgcn_update_dpp(0, s, 0x118, 0xf, 0xf, true);
  s += __builtin_amdgcn_update_dpp(0, s, 0x142, 0xa, 0xf, false);
  s += __builtin_amdgcn_update_dpp(0, s, 0x143, 0xc, 0xf, false);
  if (threadIdx.x == 63) y[0] = s;
}
//: ballots | | 1 x 128 | in int 100; out int 128; int 100
extern "C" __global__ void ballots(const int* x, int* y, int n) {
  bool odd = threadIdx.x < n && (x[threadIdx.x] & 1);
  unsigned long long votes = __ballot(odd);
  int before = __builtin_popcountll(votes & ((1ull << (threadIdx.x & 63)) - 1));
  y[threadIdx.x] = odd ? before : __builtin_popcountll(votes);
}
//: double_buffering | | 1 x 256 | in float 2048; out float 256
extern "C" __global__ void double_buffering(const float* x, float* y) {
  __shared__ float t[2][256];
  float s = 0;
  t[0][threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int k = 0; k < 8; k++) {
    if (k < 7) t[(k + 1) & 1][threadIdx.x] = x[(k + 1) * 256 + threadIdx.x];
    s += t[k & 1][255 - threadIdx.x];
    __syncthreads();
  }
  y[threadIdx.x] = s;
}
//: partial_tile_with_padding | | 4 x 256 | in float 900; out float 900; int 30
extern "C" __global__ void partial_tile_with_padding(const float* x, float* y, int n) {
  __shared__ float t[16][17];
  int r = threadIdx.x / 16, c = threadIdx.x % 16, row = blockIdx.x / 2 * 16 + r, column = blockIdx.x % 2 * 16 + c;
  if (row < n && column < n) t[r][c] = x[row * n + column];
  __syncthreads();
  float v = t[c][r] * 2;
  int to_row = blockIdx.x % 2 * 16 + r, to_column = blockIdx.x / 2 * 16 + c;
  if (to_row < n && to_column < n) y[to_row * n + to_column] = v;
}
//: padding_is_read_and_discarded | | 1 x 256 | in float 200; out float 200; int 200
extern "C" __global__ void padding_is_read_and_discarded(const float* x, float* y, int n) {
  __shared__ float t[320];
  if (threadIdx.x < n) t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float s = 0;
  for (int k = 0; k < 64; k++) {
    float v = t[threadIdx.x + k];
    if (threadIdx.x + k < n && v > 0.5f) s += v;
  }
  if (threadIdx.x < n) y[threadIdx.x] = s;
}
//: last_block_done | | 8 x 256 | in float 2048; out float 1; work float 8; zero int 1
extern "C" __global__ void last_block_done(const float* x, float* y, float* part, int* count) {
  __shared__ float t[4];
  __shared__ bool last;
  float s = x[blockIdx.x * 256 + threadIdx.x];
  for (int w = 32; w; w /= 2) s += __shfl_xor(s, w);
  if (threadIdx.x % 64 == 0) t[threadIdx.x / 64] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    part[blockIdx.x] = t[0] + t[1] + t[2] + t[3];
    __threadfence();
    last = atomicAdd(count, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float all = 0;
    for (int b = 0; b < 8; b++) all += part[b];
    y[0] = all;
  }
}
//: last_block_of_all_threads | | 8 x 256 | in float 2048; out float 256; work float 2048; zero int 1
extern "C" __global__ void last_block_of_all_threads(const float* x, float* y, float* part, int* count) {
  __shared__ bool last;
  part[blockIdx.x * 256 + threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x] * 2;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(count, 1) == 7;
  __syncthreads();
  if (last) {
    __threadfence();
    float all = 0;
    for (int b = 0; b < 8; b++) all += part[b * 256 + threadIdx.x];
    y[threadIdx.x] = all;
  }
}
//: flag_of_the_device | | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void flag_of_the_device(const float* x, float* y, float* w, int* flag) {
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) __builtin_amdgcn_s_sleep(1);
    y[threadIdx.x] = w[threadIdx.x];
  }
}
//: last_block_of_the_device | | 16 x 64 | in float 1024; out float 64; work float 1024; zero int 1
extern "C" __global__ void last_block_of_the_device(const float* x, float* y, float* part, int* count) {
  int i = blockIdx.x * 64 + threadIdx.x, last = 0;
  part[i] = x[i] * 2;
  if (threadIdx.x == 0)
    last = __hip_atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) == 15;
  if (__shfl(last, 0)) {
    float all = 0;
    for (int b = 0; b < 16; b++) all += part[b * 64 + threadIdx.x];
    y[threadIdx.x] = all;
  }
}
//: chain_of_flags | | 8 x 64 | in float 512; out float 512; zero int 9
extern "C" __global__ void chain_of_flags(const float* x, float* y, int* flags) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float before = 0;
  if (blockIdx.x) {
    while (!__hip_atomic_load(flags + blockIdx.x, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) __builtin_amdgcn_s_sleep(1);
    before = y[i - 64];
  }
  y[i] = x[i] + before;
  __syncthreads();
  if (threadIdx.x == 0) __hip_atomic_store(flags + blockIdx.x + 1, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}
//: flag_with_fences | | 2 x 64 | in float 64; out float 64; work float 64; zero int 1
extern "C" __global__ void flag_with_fences(const float* x, float* y, float* w, volatile int* flag) {
  if (blockIdx.x == 1) {
    w[threadIdx.x] = x[threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    while (*flag == 0) __builtin_amdgcn_s_sleep(1);
    __threadfence();
    y[threadIdx.x] = w[threadIdx.x];
  }
}
//: lock | | 6 x 128 | in float 768; zero float 128; zero int 1
extern "C" __global__ void lock(const float* x, float* y, int* lock) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1)) __builtin_amdgcn_s_sleep(1);
    __threadfence();
  }
  __syncthreads();
  y[threadIdx.x] += x[blockIdx.x * 128 + threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(lock, 0);
}
//: grid_barrier | | 6 x 128 | in float 768; out float 768; work float 768; zero int 1
extern "C" __global__ void grid_barrier(const float* x, float* y, float* w, int* arrived) {
  int i = blockIdx.x * 128 + threadIdx.x;
  w[i] = x[i] * 3;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < 6) __builtin_amdgcn_s_sleep(1);
  }
  __syncthreads();
  __threadfence();
  y[i] = w[767 - i];
}
//: histogram | | 4 x 256 | range int 1024; zero int 64
extern "C" __global__ void histogram(const int* x, int* bins) {
  __shared__ int own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(own + (x[blockIdx.x * 256 + threadIdx.x] & 63), 1);
  __syncthreads();
  if (threadIdx.x < 64 && own[threadIdx.x]) atomicAdd(bins + threadIdx.x, own[threadIdx.x]);
}
//: stream_compaction | | 4 x 256 | in int 1024; zero int 1024; zero int 1
extern "C" __global__ void stream_compaction(const int* x, int* y, int* count) {
  int v = x[blockIdx.x * 256 + threadIdx.x];
  if (v & 1) y[atomicAdd(count, 1)] = v;
}
//: same_value_from_all | | 4 x 256 | in int 1024; zero int 1
extern "C" __global__ void same_value_from_all(const int* x, int* found) {
  if (x[blockIdx.x * 256 + threadIdx.x] > 10) *found = 1;
}
//: same_flag_in_lds | | 1 x 256 | in int 256; out int 256
extern "C" __global__ void same_flag_in_lds(const int* x, int* y) {
  __shared__ int any;
  if (threadIdx.x == 0) any = 0;
  __syncthreads();
  if (x[threadIdx.x] > 900) any = 1;
  __syncthreads();
  y[threadIdx.x] = any;
}
//: early_return | | 4 x 256 | in float 700; out float 700; int 700
extern "C" __global__ void early_return(const float* x, float* y, int n) {
  __shared__ float t[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  if (blockIdx.x * 256 + threadIdx.x / 64 * 64 >= n) return;
  t[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = t[threadIdx.x / 4 * 4];
}
//: warp_specialised | | 1 x 128 | in float 1024; out float 64
extern "C" __global__ void warp_specialised(const float* x, float* y) {
  __shared__ float t[2][64];
  float s = 0;
  for (int k = 0; k <= 16; k++) {
    if (threadIdx.x >= 64) {
      if (k < 16) t[k & 1][threadIdx.x - 64] = x[k * 64 + threadIdx.x - 64];
    } else if (k) s += t[(k - 1) & 1][63 - threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.x < 64) y[threadIdx.x] = s;
}
//: private_array_filled | | 1 x 64 | in int 64; out int 64
extern "C" __global__ void private_array_filled(const int* x, int* y) {
  int a[16];
  for (int i = 0; i < 16; i++) a[i] = x[(threadIdx.x + i) & 63];
  y[threadIdx.x] = a[x[threadIdx.x] & 15];
}
//: half_a_register | | 1 x 64 | in half 64; in half 64; out half 128
extern "C" __global__ void half_a_register(const _Float16* a, const _Float16* b, _Float16* y) {
  typedef _Float16 Pair __attribute__((ext_vector_type(2)));
  Pair v = {a[threadIdx.x], b[63 - threadIdx.x]};
  v = v * v + v;
  *(Pair*)(y + 2 * threadIdx.x) = v;
}
//: in_place | | 4 x 256 | inout float 1024
extern "C" __global__ void in_place(float* x) { x[blockIdx.x * 256 + threadIdx.x] *= 2; }
//: halo_is_read_and_discarded | | 4 x 256 | inout float 1026
extern "C" __global__ void halo_is_read_and_discarded(float* x) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float here = x[i + 1], next = x[i + 2];
  x[i + 1] = threadIdx.x < 255 && next > 1e30f ? next : here * 2;
}
//: exchange_of_a_pointer | | 1 x 64 | in float 64; in float 64; out float 64; int 1
extern "C" __global__ void exchange_of_a_pointer(const float* a, const float* b, float* y, int which) {
  const float* chosen = (threadIdx.x & 1) == which ? a : b;
  y[threadIdx.x] = chosen[threadIdx.x];
}
//: end_pointer | | 1 x 64 | in float 1000; out float 64; int 1000
extern "C" __global__ void end_pointer(const float* x, float* y, int n) {
  float s = 0;
  for (const float *p = x + threadIdx.x, *end = x + n; p < end; p += 64) s += *p;
  y[threadIdx.x] = s;
}
//: matrix_cores | | 1 x 64 | in half 256; in half 256; out float 256
extern "C" __global__ void matrix_cores(const _Float16* a, const _Float16* b, float* y) {
  typedef _Float16 Four __attribute__((ext_vector_type(4)));
  typedef float Sum __attribute__((ext_vector_type(4)));
  Four x = *(const Four*)(a + threadIdx.x % 16 * 16 + threadIdx.x / 16 * 4), w;
  for (int k = 0; k < 4; k++) w[k] = b[(threadIdx.x / 16 * 4 + k) * 16 + threadIdx.x % 16];
  Sum s = {};
  s = __builtin_amdgcn_mfma_f32_16x16x16f16(x, w, s, 0, 0, 0);
  for (int k = 0; k < 4; k++) y[(threadIdx.x / 16 * 4 + k) * 16 + threadIdx.x % 16] = s[k];
}
//: rows_of_a_matrix_tile_discarded | | 1 x 64 | in half 160; in half 256; out float 160; int 10
extern "C" __global__ void rows_of_a_matrix_tile_discarded(const _Float16* a, const _Float16* b, float* y, int m) {
  typedef _Float16 Four __attribute__((ext_vector_type(4)));
  typedef float Sum __attribute__((ext_vector_type(4)));
  __shared__ _Float16 t[16 * 16];
  for (int i = threadIdx.x; i < m * 16; i += 64) t[i] = a[i];
  __syncthreads();
  Four x = *(const Four*)(t + threadIdx.x % 16 * 16 + threadIdx.x / 16 * 4), w;
  for (int k = 0; k < 4; k++) w[k] = b[(threadIdx.x / 16 * 4 + k) * 16 + threadIdx.x % 16];
  Sum s = {};
  s = __builtin_amdgcn_mfma_f32_16x16x16f16(x, w, s, 0, 0, 0);
  for (int k = 0; k < 4; k++) {
    int row = threadIdx.x / 16 * 4 + k;
    if (row < m) y[row * 16 + threadIdx.x % 16] = s[k];
  }
}
//: welford | | 4 x 64 | in float 400; out float 8; int 100
extern "C" __global__ void welford(const float* x, float* y, int n) {
  float mean = 0, m2 = 0, count = 0;
  for (int i = threadIdx.x; i < n; i += 64) {
    float v = x[blockIdx.x * n + i], d = v - mean;
    count += 1, mean += d / count, m2 += d * (v - mean);
  }
  for (int w = 32; w; w /= 2) {
    float m = __shfl_xor(mean, w), q = __shfl_xor(m2, w), c = __shfl_xor(count, w), d = m - mean, all = count + c;
    if (all > 0) mean += d * c / all, m2 += q + d * d * count * c / all;
    count = all;
  }
  if (threadIdx.x == 0) y[2 * blockIdx.x] = mean, y[2 * blockIdx.x + 1] = m2;
}
//: a_table_is_searched_for_lanes_that_store_nothing | | 1 x 64 | in float 40; range float 256; out float 40; int 40
extern "C" __global__ void a_table_is_searched_for_lanes_that_store_nothing(const float* x, const float* table, float* y, int n) {
  __shared__ float sorted[256], values[64];
  for (int i = threadIdx.x; i < 256; i += 64) sorted[i] = table[i];
  if (threadIdx.x < n) values[threadIdx.x] = x[threadIdx.x] / 4;
  __syncthreads();
  const float value = values[threadIdx.x];
  int at = 127;
  for (int step = 64; step; step /= 2) at += value > sorted[at] ? step : -step;
  values[63 - threadIdx.x] = table[at];
  __syncthreads();
  if (threadIdx.x < n) y[threadIdx.x] = values[63 - threadIdx.x];
}
__device__ void added_by_exchange(float* p, float v) {  // the plain read is a guess, which the exchange verifies
  unsigned *word = (unsigned*)p, old = *word, seen;
  do {
    seen = old;
    old = atomicCAS(word, seen, __float_as_uint(__uint_as_float(seen) + v));
  } while (old != seen);
}
//: sum_by_exchange | | 4 x 64 | in float 256; zero float 1
extern "C" __global__ void sum_by_exchange(const float* x, float* y) { added_by_exchange(y, x[blockIdx.x * 64 + threadIdx.x]); }
//: sum_by_exchange_in_lds | | 1 x 256 | in float 256; out float 1
extern "C" __global__ void sum_by_exchange_in_lds(const float* x, float* y) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  added_by_exchange(&sum, x[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) *y = sum;
}
//: maximum_by_exchange | | 4 x 64 | in int 256; zero int 1
extern "C" __global__ void maximum_by_exchange(const int* x, int* y) {
  int v = x[blockIdx.x * 64 + threadIdx.x], old = *y;
  while (v > old) {
    int seen = old;
    old = atomicCAS(y, seen, v);
    if (old == seen) break;
  }
}

//: byte_counters | | 2 x 128 | in char 4096; out int 64
extern "C" __global__ void byte_counters(const signed char* x, int* y) {
  __shared__ unsigned char seen[32][128];  // four lanes have their counters in one word
  for (int v = 0; v < 32; v++) seen[v][threadIdx.x] = 0;
  for (int i = 0; i < 16; i++) seen[x[(blockIdx.x * 128 + threadIdx.x) * 16 + i] & 31][threadIdx.x]++;
  __syncthreads();
  if (threadIdx.x < 32) {
    int sum = 0;
    for (int lane = 0; lane < 128; lane++) sum += seen[threadIdx.x][lane];
    y[blockIdx.x * 32 + threadIdx.x] = sum;
  }
}
//: tree_of_bytes | | 1 x 128 | in char 256; out char 256
extern "C" __global__ void tree_of_bytes(const signed char* x, signed char* y) {
  __shared__ signed char sums[256];  // a prefix sum; different waves change bytes of one word
  int t = threadIdx.x, apart = 1;
  sums[t] = x[t];
  sums[t + 128] = x[t + 128];
  for (int d = 128; d > 0; d >>= 1, apart *= 2) {
    __syncthreads();
    if (t < d) sums[apart * (2 * t + 2) - 1] += sums[apart * (2 * t + 1) - 1];
  }
  if (t == 0) sums[255] = 0;
  for (int d = 1; d < 256; d *= 2) {
    apart >>= 1;
    __syncthreads();
    if (t < d) {
      int left = apart * (2 * t + 1) - 1, right = apart * (2 * t + 2) - 1;
      signed char kept = sums[left];
      sums[left] = sums[right];
      sums[right] += kept;
    }
  }
  __syncthreads();
  y[t] = sums[t];
  y[t + 128] = sums[t + 128];
}

//: counts_in_its_own_memory | | 1 x 64 | out int 64
extern "C" __global__ void counts_in_its_own_memory(int* out) {
  volatile int rounds = 0;
  bool more;
  do {  // what differs from round to round lies in scratch alone, as in code without optimisation
    int now = rounds;
    asm volatile("v_add_u32 %0, 1, %0" : "+v"(now));
    rounds = now;
    more = now < 5000;
    asm volatile("v_mov_b32 %0, 0" : "+v"(now));
  } while (more);
  out[threadIdx.x] = rounds;
}
