// A stand-in for a GPU's runtime library: streams that are threads, memory that is the host's. It answers to the names of
// CUDA's functions that the shim binds, with "standin" for a prefix, and to a few by which a test gives it work.
#include <atomic>
#include <chrono>
#include <condition_variable>
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

// What a kernel launches: after so many ms on a stream (0: the default one), set bytes.
void work(int stream, int ms, char* at, int byte, size_t bytes) {
    streams()[stream].add([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        memset(at, byte, bytes);
    });
}
void fail(int code) { error = code; }
}
