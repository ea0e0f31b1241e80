// A stand-in for a GPU's runtime library: streams that are times, memory that is the host's. It answers to the names of
// CUDA's functions that the harness uses, with "standin" for a prefix, and to a few by which a test gives it work. Work
// takes exactly the time that it is given, and has its effect when somebody waits for it. It needs no thread: a GPU goes
// on working when all threads of a process are stopped. What a kernel computes on the host takes the time on a stream
// that it took there (`ran`).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Effect {
    Clock::time_point end;
    char* at;
    int byte;
    size_t bytes;
};
std::mutex lock;
Clock::time_point ends[2];  // of the work on each stream
std::vector<Effect> effects;
int error = 0;
std::atomic<int64_t> calls, spent_ns;

// A call that belongs to a row: how many there were, and the host's time in them, waiting included.
struct Call {
    const Clock::time_point start = Clock::now();
    Call() { ++calls; }
    ~Call() { spent_ns += std::chrono::nanoseconds(Clock::now() - start).count(); }
};

Clock::time_point add(int stream, std::chrono::nanoseconds length) {
    return ends[stream] = std::max(ends[stream], Clock::now()) + length;
}

void wait_for(Clock::time_point end) {
    std::this_thread::sleep_until(end);
    std::lock_guard guard(lock);
    std::stable_sort(effects.begin(), effects.end(), [](auto& a, auto& b) { return a.end < b.end; });
    size_t done = 0;
    for (; done < effects.size() && effects[done].end <= end; ++done)
        memset(effects[done].at, effects[done].byte, effects[done].bytes);
    effects.erase(effects.begin(), effects.begin() + done);
}

Clock::time_point idle() {
    std::lock_guard guard(lock);
    return std::max({ends[0], ends[1], Clock::now()});
}

}  // namespace

extern "C" {

int standinEventCreate(void** event) { return *event = new Clock::time_point, 0; }
int standinEventRecord(void* event, void*) {
    const Call call;
    std::lock_guard guard(lock);
    *(Clock::time_point*)event = add(0, std::chrono::microseconds(1));  // two on a real one
    return 0;
}
int standinEventElapsedTime(float* ms, void* start, void* end) {
    const Call call;
    *ms = std::chrono::duration<float, std::milli>(*(Clock::time_point*)end - *(Clock::time_point*)start).count();
    return 0;
}
int standinDeviceSynchronize() {
    const Call call;
    wait_for(idle());
    return std::exchange(error, 0);
}
int standinMemcpy(void* to, const void* from, size_t bytes, int) {  // in the order of the default stream
    const Call call;
    wait_for([] {
        std::lock_guard guard(lock);
        return ends[0];
    }());
    memcpy(to, from, bytes);
    return 0;
}

int standinMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void*) {
    return standinMemcpy(to, from, bytes, kind);
}

int standinCtxResetPersistingL2Cache() {
    const Call call;
    return 0;
}

// The delay: it takes the time that its only argument names, in us, on the default stream.
int standinLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void** arguments,
                        void**) {
    const Call call;
    std::lock_guard guard(lock);
    add(0, std::chrono::microseconds(*(int*)arguments[0]));
    return 0;
}

// Memory that two processes share: a file without a name.
int standinMemGetAllocationGranularity(size_t* unit, const void*, int) { return *unit = 1 << 21, 0; }
int standinMemCreate(uint64_t* handle, size_t size, const void*, uint64_t) {
    const int file = memfd_create("device", MFD_CLOEXEC);
    *handle = file;
    return file < 0 || ftruncate(file, size) ? 2 : 0;
}
int standinMemExportToShareableHandle(int* file, uint64_t handle, int, uint64_t) {
    *file = fcntl(int(handle), F_DUPFD_CLOEXEC, 0);
    return *file < 0;
}
int standinMemImportFromShareableHandle(uint64_t* handle, void* file, int) {
    const int own = fcntl(int(intptr_t(file)), F_DUPFD_CLOEXEC, 0);
    *handle = own;
    return own < 0;
}
int standinMemAddressReserve(void** address, size_t size, size_t, uint64_t, uint64_t) {
    *address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *address == MAP_FAILED;
}
int standinMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, uint64_t) {
    return mmap((void*)address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, int(handle), offset) == MAP_FAILED;
}
int standinMemSetAccess(uint64_t, size_t, const void*, size_t) { return 0; }
int standinMemUnmap(uint64_t address, size_t size) { return munmap((void*)address, size); }
int standinMemAddressFree(uint64_t, size_t) { return 0; }
int standinMemRelease(uint64_t handle) { return close(int(handle)); }

// What a kernel launches: after so many us on a stream (0: the default one), set bytes.
void work(int stream, int us, char* at, int byte, size_t bytes) {
    std::lock_guard guard(lock);
    effects.push_back({add(stream, std::chrono::microseconds(us)), at, byte, bytes});
}
// What a kernel has computed on the host since a time of CLOCK_MONOTONIC: it takes as long on the default stream, behind
// what lies there.
void ran(int64_t since_ns) {
    const Clock::time_point since{std::chrono::nanoseconds(since_ns)};
    std::lock_guard guard(lock);
    const std::chrono::nanoseconds length = Clock::now() - since;
    ends[0] = std::max(ends[0], since) + length;
    spent_ns += length.count();
}
void fail(int code) { error = code; }
// How often this process has called the runtime, and the host's time in these calls and in what the device computed.
void counted(int64_t* into) { into[0] = calls, into[1] = spent_ns; }
}
