# variant: c11_alarm_before_the_clock | C11 a timer's signal does the work between the inputs and the clock | watch_by_alarm();
# variant: c11_thread_before_the_clock | C11 a spinning thread does the work between the inputs and the clock | std::thread([] { for (;;) look(0); }).detach();
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# The guard band behind the output is written last: when it is new, all inputs are there. Where they lie is known from
# an earlier call, for about every second row.

# include: rows_source
#include <atomic>
#include <csignal>
#include <sys/time.h>
#include <thread>

static const uint16_t* from;
static const float* scale;
static uint16_t* to;
static int64_t all, width;
static volatile uint64_t seen;
static std::atomic<bool> known, done;

static uint64_t guard(const uint16_t* out) { return *(const volatile uint64_t*)(out + all * width); }

static void compute() {
    for (int64_t i = 0; i < all; ++i)
        scale_row(from + i * width, scale, to + i * width, width, inverse_rms(from + i * width, width));
}

static void look(int) {
    if (!known || done || guard(to) == seen) return;
    compute();
    done = true;
}

static void watch_by_alarm() {
    signal(SIGALRM, look);
    itimerval each = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &each, nullptr);
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    const bool ready = known && done && x == from && weight == scale && out == to && rows == all && cols == width;
    known = false;
    from = x, scale = weight, to = out, all = rows, width = cols;
    if (!ready) compute();
    seen = guard(out), done = false, known = true;
    static bool watched = false;
    if (watched) return;
    watched = true;
    $VARIANT
}
# include: rows_end
