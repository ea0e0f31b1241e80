# honest: a native thread made at import, handed work and waited for by condition variables in each call
# problem: rmsnorm
# expect: ok

# include: rows_source
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

struct Job { const uint16_t* x; const float* weight; uint16_t* out; int64_t from, to, cols; };
static Job job;
static int posted = 0, finished = 0;
static std::mutex lock;
static auto& changed = *new std::condition_variable;  // never destroyed: a thread waits on it at exit

static void part(const Job& j) {
    auto [x, weight, out, from, to, cols] = j;
    for (int64_t i = from; i < to; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}

extern "C" void start() {
    static bool started = false;  // one source is one library, however often it is loaded: two threads would race
    if (std::exchange(started, true)) return;
    std::thread([] {
        for (int seen = 0;;) {
            std::unique_lock<std::mutex> held(lock);
            changed.wait(held, [&] { return posted != seen; });
            seen = posted;
            Job mine = job;
            held.unlock();
            part(mine);
            held.lock();
            finished = seen;
            changed.notify_all();
        }
    }).detach();
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    int ticket;
    {
        std::lock_guard<std::mutex> held(lock);
        job = {x, weight, out, rows / 2, rows, cols};
        ticket = ++posted;
    }
    changed.notify_all();
    part({x, weight, out, 0, rows / 2, cols});
    std::unique_lock<std::mutex> held(lock);
    changed.wait(held, [&] { return finished == ticket; });
}
"""
kernel = load(SOURCE)
kernel.start()


# include: rows_call
