// The stand-in for HIP's runtime (libamdhip64): what its files share.
//
// A submission's own host code calls it; kernels go to a simulated GPU by the functions that Python gives (`Machine`).
// Device memory is main memory, and everything is done when a call returns: streams and events have nothing to order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <hip/hip_runtime_api.h>

namespace stand_in {

// A kernel's needs, as `Needs` in Python.
struct Needs {
    int32_t registers, lds_bytes, scratch_bytes, most_threads;
};
// The device, as `Device` in Python.
struct Device {
    const char *name, *arch;
    uint64_t memory_bytes;
    int32_t units, lds_bytes, l2_bytes, clock_khz;
};
// The simulated GPU. Functions that return `int` return 0, or another number after a failure that Python keeps.
struct Machine {
    Device device;
    int (*load)(const void* code, uint64_t bytes, uint64_t* handle);
    // `packed`: the explicit arguments as they lie in memory, where there are no pointers to them (`arguments`).
    int (*launch)(uint64_t code, const char* kernel, const uint32_t* grid, const uint32_t* block, void** arguments,
                  const void* packed, uint64_t packed_bytes, uint64_t dynamic_lds, int cooperative);
    int (*symbol)(uint64_t code, const char* name, uint64_t* address, uint64_t* bytes);
    int (*needs)(uint64_t code, const char* kernel, Needs* needs);
    int (*resident)(uint64_t code, const char* kernel, uint32_t threads, uint64_t dynamic_lds, int32_t* blocks);
    void (*allocated)(uint64_t address, uint64_t bytes);
    void (*freed)(uint64_t address);
    void (*written)(uint64_t address, uint64_t bytes);
    // A copy (`from`: 0 for a fill) that is done. `to_place` and `from_place`: 1 if it is the device's memory, 2 if it is
    // the host's, 0 if the stand-in did not allocate it.
    void (*copied)(uint64_t to, uint64_t from, uint64_t bytes, int to_place, int from_place);
    // Open the inputs' memory to this process (1), or close it again (0).
    void (*use)(int begins);
    // What HIP's runtime refuses, in one sentence; the first one is raised when the host code returns. `is_limit`: a device
    // would do it, and the stand-in does not.
    void (*refused)(const char* function, const char* sentence, int is_limit);
};
extern const Machine* machine;

// Keep an error as the last one, and return it.
hipError_t ended(hipError_t error);
// Tell Python that a call was refused, and return the error for it.
hipError_t refused(const char* function, const std::string& sentence, hipError_t error = hipErrorNotSupported);
// Keep the error of a failed function of the machine: as on a device, later launches fail as well.
hipError_t failed(hipError_t error);
hipError_t failure();

// A kernel or a variable of the device, in code that was registered or loaded.
struct Code {
    const void* text;
    uint64_t bytes, handle;
    bool loaded;
    hipError_t load();
};
struct Symbol {
    Code* code;
    std::string name;
};
// The kernel or variable behind the host's pointer to it; null if there is none.
const Symbol* kernel_of(const void* pointer);
const Symbol* variable_of(const void* pointer);

// Where the launch that is being made stands in the submission; none: line 0. `launch_lines.h` tells it.
struct Place {
    const char* file;
    int line;
};
Place& launching();
// The place of a launch is known until it has been made or refused.
struct Launching {
    ~Launching() { launching() = {}; }
};

}  // namespace stand_in

#define SERVED extern "C" __attribute__((visibility("default")))
