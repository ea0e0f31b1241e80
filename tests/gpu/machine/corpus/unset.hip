// Values that nobody wrote, and that a result, an address or a branch depends on.
#include <hip/hip_runtime.h>

//: output_is_added_to | uninitialised read | 4 x 64 | in float 256; out float 256
extern "C" __global__ void output_is_added_to(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] += x[i];  // defect
}
//: sum_into_an_empty_output | uninitialised read | 4 x 64 | in float 256; out float 1
extern "C" __global__ void sum_into_an_empty_output(const float* x, float* y) {
  atomicAdd(y, x[blockIdx.x * 64 + threadIdx.x]);  // defect
}
//: tail_of_a_workspace | uninitialised read | 1 x 256 | in float 200; out float 256; work float 256; int 200
extern "C" __global__ void tail_of_a_workspace(const float* x, float* y, float* w, int n) {
  if (threadIdx.x < n) w[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = w[threadIdx.x];  // defect
}
//: lds_tail | uninitialised read | 1 x 256 | in float 200; out float 1; int 200
extern "C" __global__ void lds_tail(const float* x, float* y, int n) {
  __shared__ float t[256];
  if (threadIdx.x < n) t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    float s = 0;
    for (int i = 0; i < 256; i++) s += t[i];  // defect
    y[0] = s;
  }
}
//: lds_column_of_padding | uninitialised read | 1 x 64 | in float 4096; out float 64
extern "C" __global__ void lds_column_of_padding(const float* x, float* y) {
  __shared__ float t[64][65];
  for (int r = 0; r < 64; r++) t[r][threadIdx.x] = x[r * 64 + threadIdx.x];
  __syncthreads();
  float s = 0;
  for (int c = 0; c < 65; c++) s += t[threadIdx.x][c];  // defect
  y[threadIdx.x] = s;
}
//: lds_never_written | uninitialised read | 1 x 64 | out float 64; int 0
extern "C" __global__ void lds_never_written(float* y, int on) {
  __shared__ float t[64];
  if (on) t[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = t[63 - threadIdx.x];  // defect
}
//: counter_in_lds | uninitialised read | 1 x 64 | in int 64; out int 1
extern "C" __global__ void counter_in_lds(const int* x, int* y) {
  __shared__ int total;
  atomicAdd(&total, x[threadIdx.x]);  // defect
  __syncthreads();
  if (threadIdx.x == 0) y[0] = total;
}
//: maximum_in_lds | uninitialised read | 1 x 256 | in int 256; out int 1
extern "C" __global__ void maximum_in_lds(const int* x, int* y) {
  __shared__ int largest;
  atomicMax(&largest, x[threadIdx.x] - 500);  // defect
  __syncthreads();
  if (threadIdx.x == 0) y[0] = largest;
}
//: partials_of_waves | uninitialised read | 1 x 128 | in float 128; out float 1
extern "C" __global__ void partials_of_waves(const float* x, float* y) {
  __shared__ float part[4];
  float s = x[threadIdx.x];
  for (int w = 32; w; w /= 2) s += __shfl_xor(s, w);
  if (threadIdx.x % 64 == 0) part[threadIdx.x / 64] = s;
  __syncthreads();
  if (threadIdx.x == 0)
    y[0] = part[0] + part[1]  // defect
         + part[2] + part[3];  // defect
}
//: private_array | uninitialised read | 1 x 64 | in int 64; out int 64
extern "C" __global__ void private_array(const int* x, int* y) {
  int a[256];
  for (int i = 0; i < 8; i++) a[(x[threadIdx.x] + i) & 127] = i;
  y[threadIdx.x] = a[(x[threadIdx.x] + threadIdx.x) & 255];  // defect
}
//: index_from_an_empty_table | uninitialised read | 1 x 64 | in float 64; out float 64; work int 64
extern "C" __global__ void index_from_an_empty_table(const float* x, float* y, const int* index) {
  int j = index[threadIdx.x];  // defect
  y[threadIdx.x] = x[j & 63];
}
//: branch_on_an_empty_flag | uninitialised read | 4 x 64 | in float 256; out float 256; work int 4
extern "C" __global__ void branch_on_an_empty_flag(const float* x, float* y, const int* skip) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (skip[blockIdx.x])  // defect
    y[i] = 0;
  else
    y[i] = x[i];
}
//: trip_count_from_empty_memory | uninitialised read | 1 x 64 | in float 64; out float 64; work int 1
extern "C" __global__ void trip_count_from_empty_memory(const float* x, float* y, const int* count) {
  float s = 0;
  int n = *count & 7;  // defect
  for (int k = 0; k < n; k++)
    s += x[(threadIdx.x + k) & 63];
  y[threadIdx.x] = s;
}
//: last_block_with_an_empty_counter | uninitialised read | 4 x 64 | in float 256; out float 1; work float 4; work int 1
extern "C" __global__ void last_block_with_an_empty_counter(const float* x, float* y, float* part, int* count) {
  float s = x[blockIdx.x * 64 + threadIdx.x];
  for (int w = 32; w; w /= 2) s += __shfl_xor(s, w);
  if (threadIdx.x == 0) {
    part[blockIdx.x] = s;
    __threadfence();
    if (atomicAdd(count, 1) == 3) {  // defect
      __threadfence();
      y[0] = part[0] + part[1] + part[2] + part[3];
    }
  }
}
//: row_maximum_with_padding | uninitialised read | 1 x 64 | in float 48; out float 1; int 48
extern "C" __global__ void row_maximum_with_padding(const float* x, float* y, int n) {
  __shared__ float t[64];
  if (threadIdx.x < n) t[threadIdx.x] = x[threadIdx.x] - 10.f;
  __syncthreads();
  float m = t[threadIdx.x];  // defect
  for (int w = 32; w; w /= 2) m = fmaxf(m, __shfl_xor(m, w));
  if (threadIdx.x == 0) y[0] = m;
}
//: every_second_element | uninitialised read | 1 x 64 | in half 64; out half 128; work half 128
extern "C" __global__ void every_second_element(const _Float16* x, _Float16* y, _Float16* w) {
  w[2 * threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = w[threadIdx.x];  // defect
  y[threadIdx.x + 64] = w[threadIdx.x + 64];  // defect
}
//: first_iteration_uses_the_other_buffer | uninitialised read | 1 x 64 | in float 512; out float 64
extern "C" __global__ void first_iteration_uses_the_other_buffer(const float* x, float* y) {
  __shared__ float t[2][64];
  float s = 0;
  for (int k = 0; k < 8; k++) {
    t[k & 1][threadIdx.x] = x[k * 64 + threadIdx.x];
    __syncthreads();
    s += t[(k + 1) & 1][63 - threadIdx.x];  // defect
    __syncthreads();
  }
  y[threadIdx.x] = s;
}
//: multiplied_by_zero | uninitialised read | 1 x 256 | in float 200; out float 256; int 200
extern "C" __global__ void multiplied_by_zero(const float* x, float* y, int n) {
  __shared__ float t[256];
  if (threadIdx.x < n) t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float keep = threadIdx.x < n ? 1.f : 0.f;
  y[threadIdx.x] = t[threadIdx.x] * keep;  // defect
}
//: scale_of_a_block_not_loaded | uninitialised read | 1 x 64 | in float 512; in float 7; out float 64
extern "C" __global__ void scale_of_a_block_not_loaded(const float* x, const float* scales, float* y) {
  __shared__ float scale[8];
  if (threadIdx.x < 7) scale[threadIdx.x] = scales[threadIdx.x];
  __syncthreads();
  float s = 0;
  for (int b = 0; b < 8; b++) s += x[b * 64 + threadIdx.x] * scale[b];  // defect
  y[threadIdx.x] = s;
}
//: guarded_copy_of_empty_memory | uninitialised read | 1 x 64 | work float 64; out float 64; int 33
extern "C" __global__ void guarded_copy_of_empty_memory(const float* w, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = w[i];  // defect
}
//: one_accumulator_too_few | uninitialised read | 1 x 64 | in float 200; out float 64; int 200
extern "C" __global__ void one_accumulator_too_few(const float* x, float* y, int n) {
  float sums[4];
  for (int i = 0; i < 3; ++i) sums[i] = 0;
  for (int j = threadIdx.x; j < n; j += 256)
    for (int i = 0; i < 4; ++i)
      if (j + 64 * i < n) sums[i] += x[j + 64 * i];  // defect
  y[threadIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}
