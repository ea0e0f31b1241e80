// Fragments of matrices under rocWMMA's names: blocks of 16x16 and 32x32, and any k that is a multiple of the matrix
// instruction's. A lane has what the instructions want of it, in their order, as in rocWMMA. Ours; used where rocWMMA is
// not installed. Its cooperative functions and transforms are not here.
#pragma once
#include <hip/hip_bf16.h>
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

#include <cstdint>
#include <type_traits>

namespace rocwmma {
using ::int32_t;
using ::int8_t;
using ::uint32_t;
using ::uint8_t;
using index_t = int32_t;
using float16_t = _Float16;
using hfloat16_t = __half;
using bfloat16_t = hip_bfloat16;
using float32_t = float;
using float64_t = double;
using float8_t = __hip_fp8_e4m3_fnuz;
using bfloat8_t = __hip_fp8_e5m2_fnuz;
using float8_fnuz_t = float8_t;
using bfloat8_fnuz_t = bfloat8_t;

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t : uint32_t { mem_row_major, mem_col_major };

template <typename T, uint32_t N>
struct alignas(sizeof(T) * N) VecT {
  T data[N];
  __host__ __device__ T& operator[](uint32_t i) { return data[i]; }
  __host__ __device__ const T& operator[](uint32_t i) const { return data[i]; }
};
template <typename T, typename... More>
__host__ __device__ inline VecT<T, 1 + sizeof...(More)> make_vector(T first, More... more) {
  return {{first, (T)more...}};
}

namespace ks {
template <typename T, uint32_t N>
using vector = T __attribute__((ext_vector_type(N)));

// The matrix instruction of a type and block: operands of a lane are `own` elements of a row of A, a column of B.
template <typename T, uint32_t Block>
struct instruction;
#define KS_INSTRUCTION(type, block, name, operand_type, number, sum_type)                                      \
  template <>                                                                                                  \
  struct instruction<type, block> {                                                                            \
    using operand = operand_type;                                                                              \
    using sum = vector<sum_type, block * block / 64>;                                                          \
    static constexpr uint32_t own = number;                                                                    \
    static __device__ sum run(operand a, operand b, sum c) { return __builtin_amdgcn_mfma_##name(a, b, c, 0, 0, 0); } \
  };
#define KS_BOTH(type, name16, name32, operand_type, number, sum_type)     \
  KS_INSTRUCTION(type, 16, name16, operand_type, number, sum_type)        \
  KS_INSTRUCTION(type, 32, name32, operand_type, number, sum_type)
using four_halves = vector<_Float16, 4>;
using four_shorts = vector<short, 4>;
KS_BOTH(float8_t, f32_16x16x32_fp8_fp8, f32_32x32x16_fp8_fp8, long, 8, float)
KS_BOTH(bfloat8_t, f32_16x16x32_bf8_bf8, f32_32x32x16_bf8_bf8, long, 8, float)
KS_BOTH(int8_t, i32_16x16x32_i8, i32_32x32x16_i8, long, 8, int)
KS_BOTH(float16_t, f32_16x16x16f16, f32_32x32x8f16, four_halves, 4, float)
KS_BOTH(hfloat16_t, f32_16x16x16f16, f32_32x32x8f16, four_halves, 4, float)
KS_BOTH(bfloat16_t, f32_16x16x16bf16_1k, f32_32x32x8bf16_1k, four_shorts, 4, float)
KS_BOTH(__hip_bfloat16, f32_16x16x16bf16_1k, f32_32x32x8bf16_1k, four_shorts, 4, float)
KS_BOTH(float, f32_16x16x4f32, f32_32x32x2f32, float, 1, float)
KS_INSTRUCTION(double, 16, f64_16x16x4f64, double, 1, double)
#undef KS_BOTH
#undef KS_INSTRUCTION

__device__ inline uint32_t lane() { return __lane_id(); }

// Where an element of a fragment is: `row` and `column` in A (m, k), B (k, n) or the sums (m, n).
struct place {
  uint32_t row, column;
};
template <typename Matrix, uint32_t M, uint32_t N, uint32_t K, typename T>
struct shape;
template <uint32_t M, uint32_t N, uint32_t K, typename T>
struct shape<matrix_a, M, N, K, T> {
  static_assert(M == 16 || M == 32, "fragments of 16 or 32 rows");
  static constexpr uint32_t number = M * K / 64, together = instruction<T, M>::own;
  static_assert(number % together == 0 && number, "k is a multiple of the matrix instruction's");
  static __device__ place of(uint32_t i) {
    return {lane() % M, (i / together * (64 / M) + lane() / M) * together + i % together};
  }
};
template <uint32_t M, uint32_t N, uint32_t K, typename T>
struct shape<matrix_b, M, N, K, T> {
  using transposed = shape<matrix_a, N, M, K, T>;
  static constexpr uint32_t number = transposed::number, together = transposed::together;
  static __device__ place of(uint32_t i) { return {transposed::of(i).column, transposed::of(i).row}; }
};
template <uint32_t M, uint32_t N, uint32_t K, typename T>
struct shape<accumulator, M, N, K, T> {
  static_assert(M == N && (M == 16 || M == 32), "sums of 16 x 16 or 32 x 32");
  static constexpr uint32_t number = M * N / 64, together = sizeof(T) == 8 ? 1 : 4;
  static __device__ place of(uint32_t i) {
    return {(i / together * (64 / N) + lane() / N) * together + i % together, lane() % N};
  }
};
}  // namespace ks

template <typename Matrix, uint32_t M, uint32_t N, uint32_t K, typename T, typename Layout = void>
class fragment {
 public:
  using element_type = T;
  static constexpr uint32_t num_elements = ks::shape<Matrix, M, N, K, T>::number;
  T x[num_elements];
  static __device__ constexpr uint32_t size() { return num_elements; }
  __device__ T& operator[](uint32_t i) { return x[i]; }
  __device__ const T& operator[](uint32_t i) const { return x[i]; }
};

namespace ks {
// Whether the elements that a lane has together are together in memory, too: along k of A and B, along m of sums.
template <typename Matrix>
constexpr bool along(bool by_row) {
  return std::is_same<Matrix, matrix_a>::value == by_row;
}
__device__ inline uint32_t offset(place at, uint32_t stride, bool by_row) {
  return by_row ? at.row * stride + at.column : at.column * stride + at.row;
}
template <bool ByRow, typename Matrix, uint32_t M, uint32_t N, uint32_t K, typename T, typename Layout>
__device__ inline void load(fragment<Matrix, M, N, K, T, Layout>& to, const T* from, uint32_t stride) {
  using shape = ks::shape<Matrix, M, N, K, T>;
  constexpr uint32_t step = along<Matrix>(ByRow) ? shape::together : 1;
#pragma unroll
  for (uint32_t i = 0; i < shape::number; i += step) {
    const auto part = *reinterpret_cast<const VecT<T, step>*>(from + offset(shape::of(i), stride, ByRow));
#pragma unroll
    for (uint32_t j = 0; j < step; ++j) to.x[i + j] = part.data[j];
  }
}
template <bool ByRow, typename Matrix, uint32_t M, uint32_t N, uint32_t K, typename T, typename Layout>
__device__ inline void store(T* to, const fragment<Matrix, M, N, K, T, Layout>& from, uint32_t stride) {
  using shape = ks::shape<Matrix, M, N, K, T>;
  constexpr uint32_t step = along<Matrix>(ByRow) ? shape::together : 1;
#pragma unroll
  for (uint32_t i = 0; i < shape::number; i += step) {
    VecT<T, step> part;
#pragma unroll
    for (uint32_t j = 0; j < step; ++j) part.data[j] = from.x[i + j];
    *reinterpret_cast<VecT<T, step>*>(to + offset(shape::of(i), stride, ByRow)) = part;
  }
}
template <typename Layout>
constexpr bool by_row = std::is_same<Layout, row_major>::value;
}  // namespace ks

template <typename Matrix, uint32_t M, uint32_t N, uint32_t K, typename T, typename Layout>
__device__ inline void fill_fragment(fragment<Matrix, M, N, K, T, Layout>& to, T value) {
#pragma unroll
  for (uint32_t i = 0; i < to.num_elements; ++i) to.x[i] = value;
}
template <typename Matrix, uint32_t M, uint32_t N, uint32_t K, typename T, typename Layout>
__device__ inline void load_matrix_sync(fragment<Matrix, M, N, K, T, Layout>& to, const T* from, uint32_t stride) {
  static_assert(!std::is_void<Layout>::value, "a fragment without a layout is loaded with one");
  ks::load<ks::by_row<Layout>>(to, from, stride);
}
template <uint32_t M, uint32_t N, uint32_t K, typename T>
__device__ inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& to, const T* from, uint32_t stride,
                                        layout_t layout) {
  layout == mem_row_major ? ks::load<true>(to, from, stride) : ks::load<false>(to, from, stride);
}
template <typename Matrix, uint32_t M, uint32_t N, uint32_t K, typename T, typename Layout>
__device__ inline void store_matrix_sync(T* to, const fragment<Matrix, M, N, K, T, Layout>& from, uint32_t stride) {
  static_assert(!std::is_void<Layout>::value, "a fragment without a layout is stored with one");
  ks::store<ks::by_row<Layout>>(to, from, stride);
}
template <uint32_t M, uint32_t N, uint32_t K, typename T>
__device__ inline void store_matrix_sync(T* to, const fragment<accumulator, M, N, K, T>& from, uint32_t stride,
                                         layout_t layout) {
  layout == mem_row_major ? ks::store<true>(to, from, stride) : ks::store<false>(to, from, stride);
}
template <uint32_t M, uint32_t N, uint32_t K, typename T, typename Sum, typename LayoutA, typename LayoutB,
          typename LayoutC, typename LayoutD>
__device__ inline void mma_sync(fragment<accumulator, M, N, K, Sum, LayoutD>& d,
                                const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                                const fragment<matrix_b, M, N, K, T, LayoutB>& b,
                                const fragment<accumulator, M, N, K, Sum, LayoutC>& c) {
  using one = ks::instruction<T, M>;
  typename one::sum sums;
#pragma unroll
  for (uint32_t i = 0; i < c.num_elements; ++i) sums[i] = c.x[i];
#pragma unroll
  for (uint32_t i = 0; i < a.num_elements; i += one::own) {
    typename one::operand left, right;
    __builtin_memcpy(&left, &a.x[i], sizeof(left));
    __builtin_memcpy(&right, &b.x[i], sizeof(right));
    sums = one::run(left, right, sums);
  }
#pragma unroll
  for (uint32_t i = 0; i < d.num_elements; ++i) d.x[i] = sums[i];
}
__device__ inline void synchronize_workgroup() { __syncthreads(); }
}  // namespace rocwmma
