// What a submission's host code mostly includes of torch, pybind11 and HIP; precompiled. Ours. Without torch::nn, data and
// optim, which take half of the time; what does not compile with it is compiled with torch's own extension.h as well.
#pragma once
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/version.h>

#include <hip/hip_bf16.h>
#include <hip/hip_ext.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

#include <launch_lines.h>
#include <torch_on_rocm.h>

// Its functions: there is one stream, and one device, whose tensors lie in main memory.
namespace c10::hip {
inline HIPStream::HIPStream(c10::Stream) {}
inline HIPStream::operator hipStream_t() const { return nullptr; }
inline hipStream_t HIPStream::stream() const { return nullptr; }
inline c10::DeviceIndex HIPStream::device_index() const { return 0; }
inline c10::Device HIPStream::device() const { return c10::Device(c10::DeviceType::CPU); }
inline c10::Stream HIPStream::unwrap() const { return c10::Stream(c10::Stream::DEFAULT, device()); }
inline HIPStream::operator c10::Stream() const { return unwrap(); }
inline void HIPStream::synchronize() const { (void)hipStreamSynchronize(nullptr); }
inline bool HIPStream::query() const { return true; }
inline HIPStream getDefaultHIPStream(c10::DeviceIndex) {
    return HIPStream(c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::DeviceType::CPU)));
}
inline HIPStream getCurrentHIPStream(c10::DeviceIndex device) { return getDefaultHIPStream(device); }
inline HIPStream getStreamFromPool(bool, c10::DeviceIndex device) { return getDefaultHIPStream(device); }
inline void setCurrentHIPStream(HIPStream) {}
inline c10::DeviceIndex current_device() { return 0; }
inline c10::DeviceIndex device_count() { return 1; }
inline void set_device(c10::DeviceIndex device) { (void)hipSetDevice(device); }
inline void device_synchronize() { (void)hipDeviceSynchronize(); }
inline HIPGuard::HIPGuard(c10::DeviceIndex) {}
inline HIPGuard::HIPGuard(c10::Device) {}
inline OptionalHIPGuard::OptionalHIPGuard() {}
inline OptionalHIPGuard::OptionalHIPGuard(std::optional<c10::Device>) {}
inline HIPStreamGuard::HIPStreamGuard(c10::Stream) {}
}  // namespace c10::hip
namespace at::hip {
inline hipDeviceProp_t* getDeviceProperties(c10::DeviceIndex) {
    static hipDeviceProp_t properties = [] {
        hipDeviceProp_t found{};
        (void)hipGetDeviceProperties(&found, 0);
        return found;
    }();
    return &properties;
}
inline hipDeviceProp_t* getCurrentDeviceProperties() { return getDeviceProperties(0); }
inline int warp_size() { return 64; }
}  // namespace at::hip
