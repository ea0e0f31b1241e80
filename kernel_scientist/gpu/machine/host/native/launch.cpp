// Launches.
#include "state.h"

#include <algorithm>
#include <vector>

namespace stand_in {
namespace {

struct Call {
    dim3 grid, block;
    size_t dynamic_lds;
    hipStream_t stream;
    Place place;
};
thread_local std::vector<Call> calls;  // between <<<...>>> and the call of the kernel's stub

// Of a block, and of a grid: blocks in one dimension, blocks in y and z of a kernel of a module, threads in one dimension.
constexpr uint64_t MOST_THREADS = 1024, MOST_BLOCKS = 0x7fffffff, MOST_MODULE_BLOCKS = 65536, MOST_ITEMS = 0xffffffff;

hipError_t launch(const char* function, const Symbol* kernel, dim3 grid, dim3 block, void** arguments,
                  const void* packed, size_t packed_bytes, size_t dynamic_lds, bool cooperative = false) {
    const Launching until_then;
    if (failure()) return ended(failure());
    if (!kernel) return refused(function, "the kernel that it is given is none", hipErrorInvalidDeviceFunction);
    const std::string of = "a launch of " + kernel->name + " has ";
    const uint64_t threads = uint64_t(block.x) * block.y * block.z, blocks = uint64_t(grid.x) * grid.y * grid.z;
    if (!threads || !blocks) return refused(function, of + "no threads", hipErrorInvalidConfiguration);
    if (std::max({block.x, block.y, block.z}) > MOST_THREADS || threads > MOST_THREADS)
        return refused(function, of + std::to_string(threads) + " threads in a block, and the most are 1024",
                       hipErrorInvalidConfiguration);
    if (std::max({grid.x, grid.y, grid.z}) > MOST_BLOCKS)
        return refused(function, of + "more than 2147483647 blocks", hipErrorInvalidConfiguration);
    if (std::max({uint64_t(grid.x) * block.x, uint64_t(grid.y) * block.y, uint64_t(grid.z) * block.z}) > MOST_ITEMS)
        return refused(function, of + "4294967296 threads or more in one dimension of its grid",
                       hipErrorInvalidConfiguration);
    if (const hipError_t error = kernel->code->load()) return error;
    const uint32_t of_grid[3] = {grid.x, grid.y, grid.z}, of_block[3] = {block.x, block.y, block.z};
    const int status = machine->launch(kernel->code->handle, kernel->name.c_str(), of_grid, of_block, arguments, packed,
                                       packed_bytes, dynamic_lds, cooperative);
    return status ? failed(hipErrorLaunchFailure) : hipSuccess;
}

// A launch whose workgroups wait for each other: all must fit on the device at once.
hipError_t launch_together(const char* function, const Symbol* kernel, dim3 grid, dim3 block, void** arguments,
                           size_t dynamic_lds) {
    const Launching until_then;
    if (!kernel) return refused(function, "the kernel that it is given is none", hipErrorInvalidDeviceFunction);
    if (const hipError_t error = kernel->code->load()) return error;
    const uint64_t threads = uint64_t(block.x) * block.y * block.z, blocks = uint64_t(grid.x) * grid.y * grid.z;
    int32_t resident = 0;
    if (machine->resident(kernel->code->handle, kernel->name.c_str(), threads, dynamic_lds, &resident))
        return ended(hipErrorInvalidValue);
    const uint64_t most = uint64_t(resident) * machine->device.units;
    if (blocks > most)
        return refused(function, "it has " + std::to_string(blocks) + " blocks of " + kernel->name + ", and at most " +
                       std::to_string(most) + " run at a time", hipErrorCooperativeLaunchTooLarge);
    return launch(function, kernel, grid, block, arguments, nullptr, 0, dynamic_lds, true);
}

// Arguments in one piece: pairs of a key and a value (HIP_LAUNCH_PARAM_*).
hipError_t launch_packed(const char* name, hipFunction_t function, dim3 grid, dim3 block, size_t lds, void** arguments,
                         void** extra) {
    const void* packed = nullptr;
    size_t bytes = 0;
    for (; extra && *extra != HIP_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == HIP_LAUNCH_PARAM_BUFFER_POINTER) packed = extra[1];
        if (extra[0] == HIP_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(size_t*)extra[1];
    }
    return launch(name, (const Symbol*)function, grid, block, arguments, packed, bytes, lds);
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;

SERVED hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t dynamic_lds, hipStream_t stream) {
    calls.push_back({grid, block, dynamic_lds, stream, {}});
    return hipSuccess;
}
// What <<<...>>> calls instead, and what names the place of another function's launch: `launch_lines.h`.
SERVED hipError_t stand_in_push(dim3 grid, dim3 block, size_t dynamic_lds, hipStream_t stream, int line, const char* file) {
    calls.push_back({grid, block, dynamic_lds, stream, {file, line}});
    return hipSuccess;
}
SERVED void stand_in_here(int line, const char* file) { launching() = {file, line}; }
SERVED hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* dynamic_lds, hipStream_t* stream) {
    if (calls.empty()) return ended(hipErrorInvalidConfiguration);
    const Call call = calls.back();
    calls.pop_back();
    launching() = call.place;
    *grid = call.grid, *block = call.block, *dynamic_lds = call.dynamic_lds, *stream = call.stream;
    return hipSuccess;
}
SERVED hipError_t hipLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t lds, hipStream_t) {
    return launch("hipLaunchKernel", kernel_of(kernel), grid, block, arguments, nullptr, 0, lds);
}
SERVED hipError_t hipExtLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t lds,
                                     hipStream_t, hipEvent_t, hipEvent_t, int) {
    return launch("hipExtLaunchKernel", kernel_of(kernel), grid, block, arguments, nullptr, 0, lds);
}
SERVED hipError_t hipLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                             unsigned lds, hipStream_t) {
    return launch_together("hipLaunchCooperativeKernel", kernel_of(kernel), grid, block, arguments, lds);
}
SERVED hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                                   unsigned block_z, unsigned lds, hipStream_t, void** arguments) {
    const dim3 grid(grid_x, grid_y, grid_z), block(block_x, block_y, block_z);
    return launch_together("hipModuleLaunchCooperativeKernel", (const Symbol*)function, grid, block, arguments, lds);
}
SERVED hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned lds, hipStream_t,
                                        void** arguments, void** extra) {
    const Launching until_then;
    const dim3 grid(grid_x, grid_y, grid_z), block(block_x, block_y, block_z);
    if (std::max(grid_y, grid_z) > MOST_MODULE_BLOCKS)
        return refused("hipModuleLaunchKernel", "more than 65536 blocks in y or z", hipErrorInvalidValue);
    return launch_packed("hipModuleLaunchKernel", function, grid, block, lds, arguments, extra);
}
// As in hip_ext.h: sizes in threads, not blocks; its name is C++'s.
__attribute__((visibility("default"))) hipError_t hipExtModuleLaunchKernel(
    hipFunction_t function, uint32_t x, uint32_t y, uint32_t z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
    size_t lds, hipStream_t, void** arguments, void** extra, hipEvent_t, hipEvent_t, uint32_t) {
    const Launching until_then;
    const char* name = "hipExtModuleLaunchKernel";
    const dim3 block(block_x, block_y, block_z);
    if (!block_x || !block_y || !block_z || x % block_x || y % block_y || z % block_z)
        return refused(name, "its grid is not a multiple of its block", hipErrorInvalidConfiguration);
    return launch_packed(name, function, dim3(x / block_x, y / block_y, z / block_z), block, lds, arguments, extra);
}
