// What host code of an extension mostly uses of torch, declared and no more. Ours: torch's own headers take ten to
// thirty seconds, these none; what does not compile with these is compiled with torch's. Host code is parsed, never run.
#pragma once
#include <cstdint>
#include <hip/hip_runtime.h>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace c10 {
using DeviceIndex = signed char;
enum class DeviceType : signed char { CPU, CUDA, HIP };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kHIP = DeviceType::HIP;
enum class Layout : signed char { Strided };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : signed char { Contiguous, Preserve, ChannelsLast };
enum class ScalarType : signed char {
  Byte, Char, Short, Int, Long, Half, Float, Double, Bool, BFloat16,
  Float8_e5m2, Float8_e4m3fn, Float8_e5m2fnuz, Float8_e4m3fnuz, UInt16, UInt32, UInt64, Undefined
};
#define KS_K(name) constexpr ScalarType k##name = ScalarType::name;
KS_K(Byte) KS_K(Char) KS_K(Short) KS_K(Int) KS_K(Long) KS_K(Half) KS_K(Float) KS_K(Double) KS_K(Bool) KS_K(BFloat16)
KS_K(UInt16) KS_K(UInt32) KS_K(UInt64) KS_K(Float8_e5m2) KS_K(Float8_e4m3fn) KS_K(Float8_e5m2fnuz) KS_K(Float8_e4m3fnuz)
#undef KS_K
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong;
constexpr ScalarType kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble;
const char* toString(ScalarType);
std::size_t elementSize(ScalarType);

#define KS_COMPOUND(type)                                                                     \
  __host__ __device__ type& operator+=(type o) { return *this = (float)*this + (float)o; } \
  __host__ __device__ type& operator-=(type o) { return *this = (float)*this - (float)o; } \
  __host__ __device__ type& operator*=(type o) { return *this = (float)*this * (float)o; } \
  __host__ __device__ type& operator/=(type o) { return *this = (float)*this / (float)o; }
struct alignas(2) BFloat16 {
  unsigned short x;
  BFloat16() = default;
  KS_COMPOUND(BFloat16)
  __host__ __device__ BFloat16(float f) : x(__builtin_bit_cast(unsigned short, (__bf16)f)) {}
  __host__ __device__ operator float() const { return __builtin_bit_cast(float, (unsigned int)x << 16); }
};
struct alignas(2) Half {
  unsigned short x;
  Half() = default;
  KS_COMPOUND(Half)
  __host__ __device__ Half(float f) : x(__builtin_bit_cast(unsigned short, (_Float16)f)) {}
  __host__ __device__ operator float() const { return (float)__builtin_bit_cast(_Float16, x); }
};
#undef KS_COMPOUND
struct Float8_e4m3fnuz { unsigned char x; };
struct Float8_e4m3fn { unsigned char x; };
struct Float8_e5m2fnuz { unsigned char x; };
struct Float8_e5m2 { unsigned char x; };

struct Stream;
struct Device {
  Device(DeviceType type, DeviceIndex index = -1);
  Device(const std::string&);
  DeviceIndex index() const;
  DeviceType type() const;
  bool is_cuda() const;
  bool is_cpu() const;
  bool operator==(const Device&) const;
  bool operator!=(const Device&) const;
};
std::ostream& operator<<(std::ostream&, const Device&);
std::ostream& operator<<(std::ostream&, ScalarType);
struct IntArrayRef {
  IntArrayRef(std::initializer_list<int64_t>);
  IntArrayRef(const int64_t&);
  IntArrayRef(const std::vector<int64_t>&);
  std::size_t size() const;
  int64_t operator[](std::size_t) const;
  const int64_t *begin() const, *end() const, *data() const;
  std::vector<int64_t> vec() const;
  bool operator==(const IntArrayRef&) const;
  bool operator!=(const IntArrayRef&) const;
};
std::ostream& operator<<(std::ostream&, const IntArrayRef&);
struct TypeMeta {
  operator ScalarType() const;
  std::size_t itemsize() const;
  const char* name() const;
};
inline bool operator==(TypeMeta a, ScalarType b) { return (ScalarType)a == b; }
inline bool operator!=(TypeMeta a, ScalarType b) { return (ScalarType)a != b; }
struct TensorOptions {
  TensorOptions();
  TensorOptions(ScalarType);
  TensorOptions(Device);
  TensorOptions(DeviceType);
  TensorOptions dtype(ScalarType) const;
  TensorOptions dtype(TypeMeta) const;
  TensorOptions device(Device) const;
  TensorOptions device(DeviceType, DeviceIndex = -1) const;
  TensorOptions layout(Layout) const;
  TensorOptions requires_grad(bool) const;
  TensorOptions memory_format(MemoryFormat) const;
};
inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
}  // namespace c10

namespace at {
using namespace c10;
class Tensor {
 public:
  Tensor();
  int64_t size(int64_t) const;
  int64_t stride(int64_t) const;
  int64_t dim() const;
  int64_t numel() const;
  int64_t element_size() const;
  int64_t ndimension() const;
  int64_t storage_offset() const;
  std::size_t nbytes() const;
  std::size_t itemsize() const;
  IntArrayRef sizes() const;
  IntArrayRef strides() const;
  template <class T> T* data_ptr() const;
  template <class T> const T* const_data_ptr() const;
  template <class T> T* mutable_data_ptr() const;
  void* data_ptr() const;
  const void* const_data_ptr() const;
  void* mutable_data_ptr() const;
  template <class T> T* data() const;
  template <class T> T item() const;
  ScalarType scalar_type() const;
  TypeMeta dtype() const;
  Device device() const;
  DeviceIndex get_device() const;
  TensorOptions options() const;
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const;
  bool is_cuda() const;
  bool is_cpu() const;
  bool defined() const;
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const;
  Tensor t() const;
  Tensor clone() const;
  Tensor detach() const;
  Tensor flatten(int64_t = 0, int64_t = -1) const;
  Tensor view(IntArrayRef) const;
  Tensor view(ScalarType) const;
  Tensor reshape(IntArrayRef) const;
  Tensor transpose(int64_t, int64_t) const;
  Tensor permute(IntArrayRef) const;
  Tensor slice(int64_t, int64_t = 0, int64_t = 0, int64_t = 1) const;
  Tensor select(int64_t, int64_t) const;
  Tensor unsqueeze(int64_t) const;
  Tensor squeeze(int64_t) const;
  Tensor squeeze() const;
  Tensor operator[](int64_t) const;
  template <class... A> Tensor to(A&&...) const;
  template <class... A> Tensor& copy_(A&&...) const;
  template <class T> Tensor& fill_(T) const;
  Tensor& zero_() const;
};
#define KS_MAKES(name) template <class... A> Tensor name(IntArrayRef, A&&...);
KS_MAKES(empty) KS_MAKES(zeros) KS_MAKES(ones) KS_MAKES(full) KS_MAKES(empty_strided)
#undef KS_MAKES
#define KS_LIKE(name) template <class... A> Tensor name(const Tensor&, A&&...);
KS_LIKE(empty_like) KS_LIKE(zeros_like) KS_LIKE(ones_like)
#undef KS_LIKE
}  // namespace at

namespace torch {
using namespace at;
using c10::device;
using c10::dtype;
}  // namespace torch

namespace pybind11 {
struct module_ {
  template <class... A> module_& def(A&&...);
};
using module = module_;
struct arg {
  constexpr explicit arg(const char*) {}
  template <class T> arg operator=(T&&) const;
};
inline namespace literals {
arg operator""_a(const char*, std::size_t);
}
}  // namespace pybind11
namespace py = pybind11;

#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define TORCH_CHECK(cond, ...) ((void)(cond))
#define TORCH_INTERNAL_ASSERT(cond, ...) ((void)(cond))
#define TORCH_CHECK_EQ(a, b) ((void)((a) == (b)))
#define AT_ASSERTM(cond, ...) ((void)(cond))
#define AT_ASSERT(cond, ...) ((void)(cond))
#define AT_ERROR(...) ((void)0)
#define TORCH_WARN(...) ((void)0)
#define KS_CASE(type, ...)                         \
  {                                                \
    using scalar_t [[maybe_unused]] = type;        \
    (void)__VA_ARGS__();                           \
  }
#define KS_FLOATING(...) KS_CASE(double, __VA_ARGS__) KS_CASE(float, __VA_ARGS__)
#define KS_REDUCED(...) KS_CASE(at::Half, __VA_ARGS__) KS_CASE(at::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) [&] { (void)(type); KS_FLOATING(__VA_ARGS__) }()
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) \
  [&] { (void)(type); KS_FLOATING(__VA_ARGS__) KS_CASE(at::Half, __VA_ARGS__) }()
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(type, name, ...) [&] { (void)(type); KS_REDUCED(__VA_ARGS__) }()
#define AT_DISPATCH_FLOATING_TYPES_AND2(one, two, type, name, ...) \
  [&] { (void)(type); KS_FLOATING(__VA_ARGS__) KS_REDUCED(__VA_ARGS__) }()
#define PYBIND11_MODULE(name, variable) [[maybe_unused]] static void ks_module(pybind11::module_& variable)
