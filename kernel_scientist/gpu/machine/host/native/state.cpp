// The last error, and the machine of this process.
#include "state.h"

namespace stand_in {

const Machine* machine = nullptr;

namespace {
thread_local hipError_t last = hipSuccess;
thread_local Place place;
hipError_t lasting = hipSuccess;
}  // namespace

Place& launching() { return place; }

hipError_t ended(hipError_t error) {
    if (error != hipSuccess) last = error;
    return error;
}

hipError_t refused(const char* function, const std::string& sentence, hipError_t error) {
    if (machine) machine->refused(function, sentence.c_str(), error == hipErrorNotSupported);
    return ended(error);
}

void refused_call(const char* function, const char* reason) { (void)refused(function, reason); }  // for `refused.cpp`

hipError_t failed(hipError_t error) { return ended(lasting = error); }
hipError_t failure() { return lasting; }

}  // namespace stand_in

using namespace stand_in;

// Python: use this machine from now on. It must outlive all code of the submission.
SERVED void stand_in_use(const Machine* given) { machine = given; }
// Python: forget the errors of earlier calls.
SERVED void stand_in_reset() { last = lasting = hipSuccess; }

// Python, in a function of the machine: the line of the launch that is being made, and what the compiler calls its file.
SERVED int stand_in_line(const char** file) {
    *file = launching().file;
    return launching().line;
}

SERVED hipError_t hipGetLastError() {
    const hipError_t error = last;
    last = lasting;
    return error;
}
SERVED hipError_t hipPeekAtLastError() { return last; }

#define NAMES(NAME)                                                                                  \
    NAME(hipSuccess, "no error")                                                                     \
    NAME(hipErrorInvalidValue, "invalid argument")                                                   \
    NAME(hipErrorOutOfMemory, "out of memory")                                                       \
    NAME(hipErrorNotInitialized, "initialization error")                                             \
    NAME(hipErrorInvalidConfiguration, "invalid configuration argument")                             \
    NAME(hipErrorInvalidSymbol, "invalid device symbol")                                             \
    NAME(hipErrorInvalidDevicePointer, "invalid device pointer")                                     \
    NAME(hipErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                        \
    NAME(hipErrorInvalidDeviceFunction, "invalid device function")                                   \
    NAME(hipErrorInvalidDevice, "invalid device ordinal")                                            \
    NAME(hipErrorInvalidImage, "device kernel image is invalid")                                     \
    NAME(hipErrorFileNotFound, "file not found")                                                     \
    NAME(hipErrorInvalidHandle, "invalid resource handle")                                           \
    NAME(hipErrorNotFound, "named symbol not found")                                                 \
    NAME(hipErrorNotReady, "device not ready")                                                       \
    NAME(hipErrorIllegalAddress, "an illegal memory access was encountered")                         \
    NAME(hipErrorLaunchOutOfResources, "too many resources requested for launch")                    \
    NAME(hipErrorLaunchTimeOut, "the launch timed out and was terminated")                           \
    NAME(hipErrorLaunchFailure, "unspecified launch failure")                                        \
    NAME(hipErrorNotSupported, "operation not supported")

SERVED const char* hipGetErrorString(hipError_t error) {
#define STRING(code, words) case code: return words;
    switch (error) { NAMES(STRING) default: return "unrecognized error code"; }
}
SERVED const char* hipGetErrorName(hipError_t error) {
#define NAME(code, words) case code: return #code;
    switch (error) { NAMES(NAME) default: return "hipErrorUnknown"; }
}
