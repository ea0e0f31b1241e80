// The lines of launches, for what the stand-in says about one that it refuses. Ours; after HIP's headers.
#pragma once
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>

// The compiler makes <<<...>>> a call of the function of this name that was declared last, with its default arguments.
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t dynamic_lds = 0, hipStream_t stream = nullptr,
                                      int line = __builtin_LINE(), const char* file = __builtin_FILE())
    __asm__("stand_in_push");
extern "C" void stand_in_here(int line, const char* file);

// `Here{} ->* x` is x. It stands before the first argument of the functions that launch: `torch_on_device.h`.
namespace stand_in {
struct Here {
    Here(int line = __builtin_LINE(), const char* file = __builtin_FILE()) { stand_in_here(line, file); }
};
template <typename T>
T&& operator->*(Here, T&& first) {
    return static_cast<T&&>(first);
}
}  // namespace stand_in
