// What torch's ROCm build has for host code (streams, guards, checks), declared so that host code parses against the
// headers of a torch without ROCm. Ours; host code is parsed, never run.
#pragma once
#if __has_include(<torch_lite.h>)
#include <torch_lite.h>
#else
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>
#include <hip/hip_runtime.h>
#include <optional>
#endif

namespace c10::hip {
class HIPStream {
 public:
  explicit HIPStream(c10::Stream stream);
  operator hipStream_t() const;
  operator c10::Stream() const;
  hipStream_t stream() const;
  c10::DeviceIndex device_index() const;
  c10::Device device() const;
  c10::Stream unwrap() const;
  void synchronize() const;
  bool query() const;
};
using CUDAStream = HIPStream;
HIPStream getCurrentHIPStream(c10::DeviceIndex device = -1);
HIPStream getDefaultHIPStream(c10::DeviceIndex device = -1);
HIPStream getStreamFromPool(bool high = false, c10::DeviceIndex device = -1);
inline HIPStream getCurrentCUDAStream(c10::DeviceIndex device = -1) { return getCurrentHIPStream(device); }
inline HIPStream getDefaultCUDAStream(c10::DeviceIndex device = -1) { return getDefaultHIPStream(device); }
void setCurrentHIPStream(HIPStream stream);
c10::DeviceIndex current_device();
c10::DeviceIndex device_count();
void set_device(c10::DeviceIndex device);
void device_synchronize();
class HIPGuard {
 public:
  explicit HIPGuard(c10::DeviceIndex device);
  explicit HIPGuard(c10::Device device);
};
class OptionalHIPGuard {
 public:
  OptionalHIPGuard();
  explicit OptionalHIPGuard(std::optional<c10::Device> device);
};
class HIPStreamGuard {
 public:
  explicit HIPStreamGuard(c10::Stream stream);
};
using CUDAGuard = HIPGuard;
using OptionalCUDAGuard = OptionalHIPGuard;
using CUDAStreamGuard = HIPStreamGuard;
using HIPStreamMasqueradingAsCUDA = HIPStream;
using HIPGuardMasqueradingAsCUDA = HIPGuard;
using OptionalHIPGuardMasqueradingAsCUDA = OptionalHIPGuard;
inline HIPStream getCurrentHIPStreamMasqueradingAsCUDA(c10::DeviceIndex d = -1) { return getCurrentHIPStream(d); }
inline HIPStream getDefaultHIPStreamMasqueradingAsCUDA(c10::DeviceIndex d = -1) { return getDefaultHIPStream(d); }
}  // namespace c10::hip
namespace c10::cuda {
using namespace c10::hip;
}
namespace at {
namespace hip {
using namespace c10::hip;
hipDeviceProp_t* getCurrentDeviceProperties();
hipDeviceProp_t* getDeviceProperties(c10::DeviceIndex device);
int warp_size();
}  // namespace hip
namespace cuda {
using namespace at::hip;
}
}  // namespace at

#define C10_HIP_CHECK(call) TORCH_CHECK((call) == hipSuccess)
#define C10_CUDA_CHECK C10_HIP_CHECK
#define AT_CUDA_CHECK C10_HIP_CHECK
#define AT_HIP_CHECK C10_HIP_CHECK
#define C10_HIP_KERNEL_LAUNCH_CHECK() C10_HIP_CHECK(hipGetLastError())
#define C10_CUDA_KERNEL_LAUNCH_CHECK C10_HIP_KERNEL_LAUNCH_CHECK
