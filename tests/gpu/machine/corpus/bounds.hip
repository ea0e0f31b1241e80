// Accesses outside of a tensor, of LDS, or of what an int holds. The format of the comments: `corpus.py`.
#include <hip/hip_runtime.h>

//: one_past_the_end | out-of-bounds read | 4 x 256 | in float 1000; out float 1000; int 1000
extern "C" __global__ void one_past_the_end(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i + 1];  // defect
}
//: no_guard_read | out-of-bounds read | 4 x 256 | in float 1000; out float 1024; int 1000
extern "C" __global__ void no_guard_read(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];  // defect
  y[i] = i < n ? v : 0.f;
}
//: no_guard_write | out-of-bounds write | 4 x 256 | in float 1024; out float 1000
extern "C" __global__ void no_guard_write(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];  // defect
}
//: guard_with_less_or_equal | out-of-bounds write | 4 x 256 | in float 1024; out float 1000; int 1000
extern "C" __global__ void guard_with_less_or_equal(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n)
    y[i] = x[i];  // defect
}
//: before_the_start | out-of-bounds read | 4 x 256 | in float 1024; out float 1024
extern "C" __global__ void before_the_start(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i]
    - x[i - 1];  // defect
}
//: write_before_the_start | out-of-bounds write | 1 x 256 | in float 256; out float 256
extern "C" __global__ void write_before_the_start(const float* x, float* y) {
  y[int(threadIdx.x) - 4] = x[threadIdx.x];  // defect
}
//: into_the_neighbour | out-of-bounds read | 1 x 64 | in float 4096; in float 4096; out float 64
extern "C" __global__ void into_the_neighbour(const float* a, const float* b, float* y) {
  y[threadIdx.x] = b[threadIdx.x]
    + a[threadIdx.x + 5000];  // defect
}
//: write_into_the_neighbour | out-of-bounds write | 1 x 64 | out float 4096; zero float 4096
extern "C" __global__ void write_into_the_neighbour(float* a, float* b) {
  for (int i = threadIdx.x; i < 4096; i += 64) b[i] = 1;
  for (int i = threadIdx.x; i < 4200; i += 64)
    a[i] = 2;  // defect
}
//: row_stride_too_large | out-of-bounds read | 16 x 64 | in float 1024; out float 1024; int 72
extern "C" __global__ void row_stride_too_large(const float* x, float* y, int stride) {
  y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * stride + threadIdx.x];  // defect
}
//: rows_and_columns_swapped | out-of-bounds read | 8 x 64 | in float 512; out float 512; int 64
extern "C" __global__ void rows_and_columns_swapped(const float* x, float* y, int n) {
  y[blockIdx.x * n + threadIdx.x] = x[threadIdx.x * n + blockIdx.x];  // defect
}
//: vector_load_over_the_tail | out-of-bounds read | 1 x 256 | in float 1022; out float 1024; int 1022
extern "C" __global__ void vector_load_over_the_tail(const float4* x, float4* y, int n) {
  if (threadIdx.x * 4 < n)
    y[threadIdx.x] = x[threadIdx.x];  // defect
}
//: vector_store_over_the_tail | out-of-bounds write | 1 x 256 | in float 1024; out float 1022; int 1022
extern "C" __global__ void vector_store_over_the_tail(const float4* x, float4* y, int n) {
  float4 v = x[threadIdx.x];
  if (threadIdx.x * 4 < n)
    y[threadIdx.x] = v;  // defect
}
//: halves_over_the_end | out-of-bounds read | 2 x 256 | in half 511; out half 512
extern "C" __global__ void halves_over_the_end(const _Float16* x, _Float16* y) {
  int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = x[i]  // defect
         * (_Float16)2;
}
//: bytes_over_the_end | out-of-bounds write | 1 x 256 | in char 256; out char 250
extern "C" __global__ void bytes_over_the_end(const signed char* x, signed char* y) {
  y[threadIdx.x] = x[threadIdx.x] + 1;  // defect
}
//: index_from_a_table | out-of-bounds read | 1 x 256 | in float 100; range int 256; out float 256
extern "C" __global__ void index_from_a_table(const float* x, const int* index, float* y) {
  int j = index[threadIdx.x];
  y[threadIdx.x] = x[j];  // defect
}
//: scatter_from_a_table | out-of-bounds write | 1 x 256 | in float 256; range int 256; zero float 200
extern "C" __global__ void scatter_from_a_table(const float* x, const int* index, float* y) {
  y[index[threadIdx.x]] = x[threadIdx.x];  // defect
}
//: atomic_without_guard | out-of-bounds write | 2 x 256 | in int 512; zero int 500
extern "C" __global__ void atomic_without_guard(const int* x, int* y) {
  int i = blockIdx.x * 256 + threadIdx.x;
  atomicAdd(y + i, x[i]);  // defect
}
//: bin_beyond_the_last | out-of-bounds write | 1 x 256 | range int 256; zero int 16
extern "C" __global__ void bin_beyond_the_last(const int* x, int* bins) {
  atomicAdd(bins + (x[threadIdx.x] >> 3), 1);  // defect
}
//: unrolled_loop_past_k | out-of-bounds read | 1 x 64 | in float 6400; out float 64; int 100
extern "C" __global__ void unrolled_loop_past_k(const float* x, float* y, int k) {
  float s = 0;
  for (int j = 0; j < k; j += 8)
    for (int u = 0; u < 8; u++)
      s += x[threadIdx.x * k + j + u];  // defect
  y[threadIdx.x] = s;
}
//: one_tile_too_many | out-of-bounds read | 1 x 64 | in float 4096; out float 64; int 65
extern "C" __global__ void one_tile_too_many(const float* x, float* y, int tiles) {
  float s = 0;
  for (int t = 0; t < tiles; t++)
    s += x[t * 64 + threadIdx.x];  // defect
  y[threadIdx.x] = s;
}
//: grid_too_large | out-of-bounds write | 5 x 256 | in float 1280; out float 1024
extern "C" __global__ void grid_too_large(const float* x, float* y) {
  int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = x[i];  // defect
}
__device__ float fetched(const float* x, int i) {
  return x[i];  // defect
}
//: in_a_helper | out-of-bounds read | 1 x 256 | in float 255; out float 256
extern "C" __global__ void in_a_helper(const float* x, float* y) { y[threadIdx.x] = fetched(x, threadIdx.x); }
//: uniform_read | out-of-bounds read | 4 x 64 | in float 3; out float 256
extern "C" __global__ void uniform_read(const float* x, float* y) {
  float scale = x[blockIdx.x];  // defect
  y[blockIdx.x * 64 + threadIdx.x] = scale;
}
//: store_to_an_input | write to a read-only input | 1 x 64 | in float 64
extern "C" __global__ void store_to_an_input(float* x) {
  x[threadIdx.x] = 0;  // defect
}
//: lds_one_too_far | out-of-bounds access of LDS | 1 x 256 | in float 256; out float 256
extern "C" __global__ void lds_one_too_far(const float* x, float* y) {
  __shared__ float t[256];
  t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = t[threadIdx.x + 1];  // defect
}
//: lds_written_too_far | out-of-bounds access of LDS | 1 x 256 | in float 256; out float 256; int 4
extern "C" __global__ void lds_written_too_far(const float* x, float* y, int pad) {
  __shared__ float t[256];
  t[threadIdx.x + pad] = x[threadIdx.x];  // defect
  __syncthreads();
  y[threadIdx.x] = threadIdx.x < pad ? 0 : t[threadIdx.x];
}
//: dynamic_lds_too_small | out-of-bounds access of LDS | 1 x 256 + 512 | in float 256; out float 256
extern "C" __global__ void dynamic_lds_too_small(const float* x, float* y) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = x[threadIdx.x];  // defect
  __syncthreads();
  y[threadIdx.x] = dynamic[255 - threadIdx.x];  // defect
}
//: lds_index_negative | out-of-bounds access of LDS | 1 x 64 | in float 64; out float 64; int 1
extern "C" __global__ void lds_index_negative(const float* x, float* y, int back) {
  __shared__ float t[64];
  t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = t[int(threadIdx.x) - back];  // defect
}
//: product_of_ints | out-of-bounds read | 2 x 64 | big char 3000000000; out char 128; int 40000; int 70000
extern "C" __global__ void product_of_ints(const char* x, char* y, int stride, int rows) {
  unsigned row = blockIdx.x ? rows - 1 : 0;
  int at = row * stride;
  y[blockIdx.x * 64 + threadIdx.x] = x[at + int(threadIdx.x)];  // defect
}
//: sum_of_ints | out-of-bounds read | 1 x 64 | big char 2300000000; out char 64; int 2147483600
extern "C" __global__ void sum_of_ints(const char* x, char* y, int from) {
  int at = from + int(threadIdx.x);
  y[threadIdx.x] = x[at];  // defect
}
//: floats_beyond_four_gigabytes | out-of-bounds read | 1 x 64 | big float 1200000000; out float 64; int 40000; int 20000
extern "C" __global__ void floats_beyond_four_gigabytes(const float* x, float* y, int stride, int row) {
  unsigned bytes = (unsigned(row) * unsigned(stride) + threadIdx.x) * 4u;
  y[threadIdx.x] = *(const float*)((const char*)x + int(bytes));  // defect
}
//: store_at_an_overflow | out-of-bounds write | 1 x 64 | big char 3000000000; int 50000; int 60000
extern "C" __global__ void store_at_an_overflow(char* y, int a, int b) {
  y[a * b - int(threadIdx.x) - 1] = 1;  // defect
}
