// Streams and events. All work is done when its call returns, so that they have nothing to wait for.
#include "state.h"

#include <cstdint>

using namespace stand_in;

static hipError_t created(hipStream_t* stream) {
    if (!stream) return ended(hipErrorInvalidValue);
    *stream = (hipStream_t) new char;
    return hipSuccess;
}
SERVED hipError_t hipStreamCreate(hipStream_t* stream) { return created(stream); }
SERVED hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned) { return created(stream); }
SERVED hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned, int) { return created(stream); }
SERVED hipError_t hipExtStreamCreateWithCUMask(hipStream_t* stream, uint32_t, const uint32_t*) {
    return created(stream);
}
SERVED hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }
SERVED hipError_t hipStreamSynchronize(hipStream_t) { return ended(failure()); }
SERVED hipError_t hipStreamQuery(hipStream_t) { return ended(failure()); }
SERVED hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned) { return hipSuccess; }
SERVED hipError_t hipStreamGetFlags(hipStream_t, unsigned* flags) {
    if (flags) *flags = 0;
    return hipSuccess;
}
SERVED hipError_t hipStreamGetPriority(hipStream_t, int* priority) {
    if (priority) *priority = 0;
    return hipSuccess;
}
SERVED hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = 0;
    return hipSuccess;
}
SERVED hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t call, void* data, unsigned) {
    call(stream, failure(), data);
    return hipSuccess;
}
SERVED hipError_t hipLaunchHostFunc(hipStream_t, void (*call)(void*), void* data) {
    call(data);
    return hipSuccess;
}
SERVED hipError_t hipStreamIsCapturing(hipStream_t, hipStreamCaptureStatus* status) {
    if (status) *status = hipStreamCaptureStatusNone;
    return hipSuccess;
}

static hipError_t made(hipEvent_t* event) {
    if (!event) return ended(hipErrorInvalidValue);
    *event = (hipEvent_t) new char;
    return hipSuccess;
}
SERVED hipError_t hipEventCreate(hipEvent_t* event) { return made(event); }
SERVED hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned) { return made(event); }
SERVED hipError_t hipEventDestroy(hipEvent_t) { return hipSuccess; }
SERVED hipError_t hipEventRecord(hipEvent_t, hipStream_t) { return hipSuccess; }
SERVED hipError_t hipEventSynchronize(hipEvent_t) { return ended(failure()); }
SERVED hipError_t hipEventQuery(hipEvent_t) { return ended(failure()); }
// A simulated launch has no time of its own; a submission cannot choose by it.
SERVED hipError_t hipEventElapsedTime(float* ms, hipEvent_t, hipEvent_t) {
    if (!ms) return ended(hipErrorInvalidValue);
    *ms = 0;
    return ended(failure());
}
