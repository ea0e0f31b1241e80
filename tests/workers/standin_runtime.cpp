// A stand-in for a GPU's runtime library: streams that are threads, memory that is the host's. It answers to the names of
// CUDA's functions that the harness uses, with "standin" for a prefix, and to a few by which a test gives it work.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

struct Stream {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    bool busy = false;

    Stream() {
        std::thread([this] {
            std::unique_lock guard(lock);
            for (;;) {
                changed.wait(guard, [this] { return !work.empty(); });
                auto next = work.front();
                work.pop_front();
                busy = true;
                guard.unlock();
                next();
                guard.lock();
                busy = false;
                changed.notify_all();
            }
        }).detach();
    }
    void add(std::function<void()> what) {
        std::lock_guard guard(lock);
        work.push_back(what);
        changed.notify_all();
    }
    void drain() {
        std::unique_lock guard(lock);
        changed.wait(guard, [this] { return work.empty() && !busy; });
    }
};

Stream* streams() {
    static Stream* both = new Stream[2];
    return both;
}

std::atomic<int> error{0};

}  // namespace

extern "C" {

int standinEventCreate(void** event) { return *event = new Clock::time_point, 0; }
int standinEventRecord(void* event, void*) {
    streams()[0].add([event] { *(Clock::time_point*)event = Clock::now(); });
    return 0;
}
int standinEventElapsedTime(float* ms, void* start, void* end) {
    *ms = std::chrono::duration<float, std::milli>(*(Clock::time_point*)end - *(Clock::time_point*)start).count();
    return 0;
}
int standinDeviceSynchronize() {
    for (int i = 0; i < 2; ++i) streams()[i].drain();
    return error.exchange(0);
}
int standinMemcpy(void* to, const void* from, size_t bytes, int) {
    streams()[0].drain();
    memcpy(to, from, bytes);
    return 0;
}

int standinCtxResetPersistingL2Cache() { return 0; }

// The delay: it takes the time that its only argument names, in us, on the default stream.
int standinLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void** arguments,
                        void**) {
    const int us = *(int*)arguments[0];
    streams()[0].add([us] { std::this_thread::sleep_for(std::chrono::microseconds(us)); });
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

// What a kernel launches: after so many ms on a stream (0: the default one), set bytes.
void work(int stream, int ms, char* at, int byte, size_t bytes) {
    streams()[stream].add([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        memset(at, byte, bytes);
    });
}
void fail(int code) { error = code; }
}
