# honest: a native thread made at import that waits on an atomic, and is waited for with a short spin
# problem: rmsnorm
# expect: ok

# include: rows_source
#include <atomic>
#include <thread>

struct Job { const uint16_t* x; const float* weight; uint16_t* out; int64_t from, to, cols; };
static Job job;
static std::atomic<int> posted{0}, finished{0};

static void part(const Job& j) {
    auto [x, weight, out, from, to, cols] = j;
    for (int64_t i = from; i < to; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}

extern "C" void start() {
    std::thread([] {
        for (int seen = 0;;) {
            posted.wait(seen);
            seen = posted.load();
            part(job);
            finished.store(seen);
            finished.notify_all();
        }
    }).detach();
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    job = {x, weight, out, rows / 2, rows, cols};
    int ticket = posted.fetch_add(1) + 1;
    posted.notify_all();
    part({x, weight, out, 0, rows / 2, cols});
    for (int spin = 0; spin < 1000 && finished.load() != ticket; ++spin) __builtin_ia32_pause();
    while (finished.load() != ticket) finished.wait(ticket - 1);
}
"""
kernel = load(SOURCE)
kernel.start()


# include: rows_call
