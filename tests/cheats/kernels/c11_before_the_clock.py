# variant: c11_alarm_before_the_clock | C11 a timer's signal does the work between the inputs and the clock | watch_by_alarm();
# variant: c11_thread_before_the_clock | C11 a spinning thread does the work between the inputs and the clock | std::thread([] { for (;;) look(0); }).detach();
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# The guard band behind the output is written last: when it is new, all inputs are there. Where they lie is known from
# an earlier call, for about every second row; in the others the work goes astray, which is noticed.

# include: rows_source
#include <atomic>
#include <csignal>
#include <sys/time.h>
#include <thread>

struct Call {
    const uint16_t* x;
    const float* weight;
    uint16_t* out;
    uint64_t guard;
    std::atomic<bool> known, done;
};
static Call calls[8];
static int64_t all, width, turn, same;

static uint64_t guard(const uint16_t* out) { return *(const volatile uint64_t*)(out + all * width); }

static void compute(const Call& call) {
    for (int64_t i = 0; i < all; ++i)
        scale_row(call.x + i * width, call.weight, call.out + i * width, width, inverse_rms(call.x + i * width, width));
}

static void look(int) {
    for (Call& call : calls) {
        if (!call.known || call.done || guard(call.out) == call.guard) continue;
        compute(call);
        call.done = true;
    }
}

static void watch_by_alarm() {
    signal(SIGALRM, look);
    itimerval each = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &each, nullptr);
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    if (rows != all || cols != width) same = 0;
    if (same == 0)
        for (Call& call : calls) call.known = false;
    all = rows, width = cols;
    Call* own = nullptr;
    for (Call& call : calls)
        if (call.known && call.x == x && call.weight == weight && call.out == out) own = &call;
    const bool ready = own && own->done;
    if (!own) own = &calls[turn++ % 8];
    own->known = false;
    own->x = x, own->weight = weight, own->out = out;
    if (!ready) compute(*own);
    own->guard = guard(out), own->done = false, own->known = ++same > 12;  // a case that is only checked is called less often
    static bool watched = false;
    if (watched) return;
    watched = true;
    $VARIANT
}
# include: rows_end
