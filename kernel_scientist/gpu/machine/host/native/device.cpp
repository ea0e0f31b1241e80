// The one device: its properties, and what its kernels need.
#include "state.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stand_in {
namespace {

constexpr int MOST_THREADS = 1024, WAVE = 64, REGISTERS = 65536, MOST_GRID = 0x7fffffff;

hipError_t kernel_needs(const char* function, const Symbol* kernel, Needs* needs) {
    if (!kernel) return refused(function, "the kernel that it is given is none", hipErrorInvalidDeviceFunction);
    if (const hipError_t error = kernel->code->load()) return error;
    return machine->needs(kernel->code->handle, kernel->name.c_str(), needs) ? ended(hipErrorInvalidDeviceFunction)
                                                                             : hipSuccess;
}

hipError_t resident(const char* function, int* blocks, const Symbol* kernel, int threads, size_t lds) {
    Needs needs;
    if (!blocks || threads <= 0) return ended(hipErrorInvalidValue);
    if (const hipError_t error = kernel_needs(function, kernel, &needs)) return error;
    int32_t count = 0;
    if (machine->resident(kernel->code->handle, kernel->name.c_str(), threads, lds, &count))
        return ended(hipErrorInvalidValue);
    *blocks = count;
    return hipSuccess;
}

// The largest block that fits, and the grid that fills the device with it.
hipError_t potential(const char* function, int* grid, int* block, const Symbol* kernel, size_t lds, int limit) {
    Needs needs;
    if (!grid || !block) return ended(hipErrorInvalidValue);
    if (const hipError_t error = kernel_needs(function, kernel, &needs)) return error;
    const int most = std::min(needs.most_threads, limit > 0 ? limit : MOST_THREADS);
    int blocks = 0;
    for (int threads = most; threads > 0 && !blocks; threads = (threads - 1) / WAVE * WAVE) {
        *block = threads;
        if (const hipError_t error = resident(function, &blocks, kernel, threads, lds)) return error;
    }
    *grid = blocks * machine->device.units;
    return hipSuccess;
}

const Symbol* of(hipFunction_t function) { return (const Symbol*)function; }

}  // namespace
}  // namespace stand_in

using namespace stand_in;

// Tensors lie in main memory, where torch's number of a device is -1.
static hipError_t numbered(int device) {
    if (device <= 0) return hipSuccess;
    return refused("hipSetDevice", "one GPU is simulated, and device " + std::to_string(device) + " is not there",
                   hipErrorInvalidDevice);
}

SERVED hipError_t hipInit(unsigned) { return hipSuccess; }
SERVED hipError_t hipDriverGetVersion(int* version) { return *version = 60443482, hipSuccess; }
SERVED hipError_t hipRuntimeGetVersion(int* version) { return *version = 60443482, hipSuccess; }
SERVED hipError_t hipGetDeviceCount(int* count) { return count ? (*count = 1, hipSuccess) : hipErrorInvalidValue; }
SERVED hipError_t hipGetDevice(int* device) { return device ? (*device = 0, hipSuccess) : hipErrorInvalidValue; }
SERVED hipError_t hipSetDevice(int device) { return numbered(device); }
SERVED hipError_t hipDeviceGet(hipDevice_t* device, int number) { return *device = 0, numbered(number); }
SERVED hipError_t hipDeviceSynchronize() { return ended(failure()); }
SERVED hipError_t hipDeviceReset() { return hipSuccess; }
SERVED hipError_t hipSetDeviceFlags(unsigned) { return hipSuccess; }
SERVED hipError_t hipDeviceSetCacheConfig(hipFuncCache_t) { return hipSuccess; }
SERVED hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig) { return hipSuccess; }
SERVED hipError_t hipDeviceSetLimit(enum hipLimit_t, size_t) { return hipSuccess; }
SERVED hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t device) {
    *bytes = machine->device.memory_bytes;
    return numbered(device);
}
SERVED hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
    snprintf(name, length, "%s", machine->device.name);
    return numbered(device);
}
SERVED hipError_t hipDeviceCanAccessPeer(int* can, int, int) { return *can = 0, hipSuccess; }
SERVED hipError_t hipProfilerStart() { return hipSuccess; }
SERVED hipError_t hipProfilerStop() { return hipSuccess; }

SERVED hipError_t hipGetDeviceProperties(hipDeviceProp_t* out, int device) {
    if (!out || !machine) return ended(hipErrorInvalidValue);
    if (const hipError_t error = numbered(device)) return error;
    const Device& facts = machine->device;
    memset((void*)out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", facts.name);
    snprintf(out->gcnArchName, sizeof out->gcnArchName, "%s:sramecc+:xnack-", facts.arch);
    out->totalGlobalMem = facts.memory_bytes;
    out->sharedMemPerBlock = out->maxSharedMemoryPerMultiProcessor = facts.lds_bytes;
    out->regsPerBlock = REGISTERS;
    out->warpSize = WAVE;
    out->maxThreadsPerBlock = MOST_THREADS;
    out->maxThreadsPerMultiProcessor = 2048;
    std::fill_n(out->maxThreadsDim, 3, MOST_THREADS);
    out->maxGridSize[0] = MOST_GRID, out->maxGridSize[1] = out->maxGridSize[2] = 65536;
    out->clockRate = facts.clock_khz;
    out->totalConstMem = MOST_GRID;
    out->major = 9, out->minor = atoi(facts.arch + 4) / 10;
    out->multiProcessorCount = facts.units;
    out->l2CacheSize = facts.l2_bytes;
    out->concurrentKernels = out->canMapHostMemory = out->cooperativeLaunch = 1;
    return hipSuccess;
}

SERVED hipError_t hipDeviceGetAttribute(int* out, hipDeviceAttribute_t attribute, int device) {
    hipDeviceProp_t facts;
    if (!out) return ended(hipErrorInvalidValue);
    if (const hipError_t error = hipGetDeviceProperties(&facts, device)) return error;
    switch (attribute) {
        case hipDeviceAttributeWarpSize: return *out = WAVE, hipSuccess;
        case hipDeviceAttributeMultiprocessorCount: return *out = facts.multiProcessorCount, hipSuccess;
        case hipDeviceAttributePhysicalMultiProcessorCount: return *out = facts.multiProcessorCount, hipSuccess;
        case hipDeviceAttributeMaxThreadsPerBlock: return *out = MOST_THREADS, hipSuccess;
        case hipDeviceAttributeMaxThreadsPerMultiProcessor: return *out = 2048, hipSuccess;
        case hipDeviceAttributeMaxBlockDimX:
        case hipDeviceAttributeMaxBlockDimY:
        case hipDeviceAttributeMaxBlockDimZ: return *out = MOST_THREADS, hipSuccess;
        case hipDeviceAttributeMaxGridDimX: return *out = MOST_GRID, hipSuccess;
        case hipDeviceAttributeMaxGridDimY:
        case hipDeviceAttributeMaxGridDimZ: return *out = 65536, hipSuccess;
        case hipDeviceAttributeMaxSharedMemoryPerBlock:
        case hipDeviceAttributeSharedMemPerBlockOptin:
        case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: return *out = facts.sharedMemPerBlock, hipSuccess;
        case hipDeviceAttributeMaxRegistersPerBlock:
        case hipDeviceAttributeMaxRegistersPerMultiprocessor: return *out = REGISTERS, hipSuccess;
        case hipDeviceAttributeClockRate: return *out = facts.clockRate, hipSuccess;
        case hipDeviceAttributeL2CacheSize: return *out = facts.l2CacheSize, hipSuccess;
        case hipDeviceAttributeComputeCapabilityMajor: return *out = facts.major, hipSuccess;
        case hipDeviceAttributeComputeCapabilityMinor: return *out = facts.minor, hipSuccess;
        case hipDeviceAttributeConcurrentKernels:
        case hipDeviceAttributeCanMapHostMemory:
        case hipDeviceAttributeMemoryPoolsSupported:
        case hipDeviceAttributeCooperativeLaunch:
        case hipDeviceAttributeUnifiedAddressing: return *out = 1, hipSuccess;
        case hipDeviceAttributeManagedMemory:
        case hipDeviceAttributeIntegrated: return *out = 0, hipSuccess;
        default:
            return refused("hipDeviceGetAttribute", "the attribute " + std::to_string(attribute) + " is not known",
                           hipErrorInvalidValue);
    }
}

SERVED hipError_t hipFuncGetAttributes(hipFuncAttributes* out, const void* function) {
    Needs needs;
    if (!out) return ended(hipErrorInvalidValue);
    if (const hipError_t error = kernel_needs("hipFuncGetAttributes", kernel_of(function), &needs)) return error;
    *out = {};
    out->numRegs = needs.registers;
    out->sharedSizeBytes = needs.lds_bytes;
    out->localSizeBytes = needs.scratch_bytes;
    out->maxThreadsPerBlock = needs.most_threads;
    out->maxDynamicSharedSizeBytes = machine->device.lds_bytes - needs.lds_bytes;
    return hipSuccess;
}
SERVED hipError_t hipFuncGetAttribute(int* out, hipFunction_attribute attribute, hipFunction_t function) {
    Needs needs;
    if (!out) return ended(hipErrorInvalidValue);
    if (const hipError_t error = kernel_needs("hipFuncGetAttribute", of(function), &needs)) return error;
    switch (attribute) {
        case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return *out = needs.most_threads, hipSuccess;
        case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return *out = needs.lds_bytes, hipSuccess;
        case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return *out = needs.scratch_bytes, hipSuccess;
        case HIP_FUNC_ATTRIBUTE_NUM_REGS: return *out = needs.registers, hipSuccess;
        default: return ended(hipErrorInvalidValue);
    }
}
// More LDS than a workgroup may have fails at the launch, as on the device.
SERVED hipError_t hipFuncSetAttribute(const void*, hipFuncAttribute, int) { return hipSuccess; }
SERVED hipError_t hipFuncSetCacheConfig(const void*, hipFuncCache_t) { return hipSuccess; }
SERVED hipError_t hipFuncSetSharedMemConfig(const void*, hipSharedMemConfig) { return hipSuccess; }

SERVED hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                               size_t lds) {
    return resident("hipOccupancyMaxActiveBlocksPerMultiprocessor", blocks, kernel_of(function), threads, lds);
}
SERVED hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                        size_t lds, unsigned) {
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, lds);
}
SERVED hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* function, size_t lds, int limit) {
    return potential("hipOccupancyMaxPotentialBlockSize", grid, block, kernel_of(function), lds, limit);
}
SERVED hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t function, int threads,
                                                                     size_t lds) {
    return resident("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", blocks, of(function), threads, lds);
}
SERVED hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, hipFunction_t function,
                                                                              int threads, size_t lds, unsigned) {
    return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, lds);
}
SERVED hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, hipFunction_t function, size_t lds,
                                                          int limit) {
    return potential("hipModuleOccupancyMaxPotentialBlockSize", grid, block, of(function), lds, limit);
}
