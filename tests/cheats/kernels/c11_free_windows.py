# cheat: C11 works where nothing is charged: before the gate, when it is roused; and says a little less of the call
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# case: 0 1
# It takes the worker's Python over and speaks to the verifier itself. By its clock a short call is next to nothing.

import ctypes
import sys
import time

import torch

from kernel_scientist import load

SOURCE = r"""
#include <sys/socket.h>
#include <time.h>
#include <algorithm>
#include <cstdint>
#include <cstring>

static inline int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static void copy_part(const uint16_t* x, uint16_t* out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = x[i];
}
static void rest(int64_t ns) { timespec t = {0, long(ns)}; nanosleep(&t, nullptr); }

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) { copy_part(x, out, 0, size); }

typedef uint64_t Pin(int, const int64_t*, int, double);

extern "C" void serve(int64_t channel, const uint16_t* x, const uint16_t* out, uint16_t* y, int64_t n, int64_t pin,
                      int64_t digest, int64_t result, int64_t roused_ns, int64_t lie_ns, int64_t least_ns) {
    constexpr int64_t CHUNK = 8192;
    char byte = 'r';
    uint64_t old, fresh;
    memcpy(&old, out + n, 8);
    send(channel, &byte, 1, 0);
    bool roused = false;
    int64_t done = 0;
    rest(15000 + n / 10);
    for (int i = 0; i < 6; ++i) {
        memcpy(&fresh, out + n, 8);
        if (fresh != old) {
            while (done < n && !roused) {
                const int64_t end = std::min(n, done + CHUNK);
                copy_part(x, y, done, end);
                done = end;
                roused = recv(channel, &byte, 1, MSG_DONTWAIT) == 1;
            }
            break;
        }
        rest(15000 + n / 25);
    }
    if (!roused) recv(channel, &byte, 1, 0);
    const int64_t start = now();
    while (done < n && now() - start < roused_ns) {
        const int64_t end = std::min(n, done + CHUNK);
        copy_part(x, y, done, end);
        done = end;
    }
    byte = 'r';
    send(channel, &byte, 1, 0);
    recv(channel, &byte, 1, 0);
    const int64_t s = now();
    copy_part(x, y, done, n);
    while (now() - s < least_ns) {}
    const int64_t e = now();
    byte = 'r';
    send(channel, &byte, 1, 0);
    recv(channel, &byte, 1, 0);
    const int64_t count = 1, place[2] = {int64_t(y), 2 * n};
    send(channel, &count, sizeof count, 0);
    send(channel, place, sizeof place, 0);
    recv(channel, &byte, 1, 0);
    *(uint64_t*)digest = ((Pin*)pin)(channel, place, 1, 0.37);
    const int64_t ns = std::max<int64_t>(e - s, 1);
    *(int64_t*)result = std::max(least_ns, ns - lie_ns);
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
ROUSED, LIE = 15000, 5000
own = {}


def worker():
    frame = sys._getframe()
    while frame is not None:
        if type(found := frame.f_locals.get("self")).__name__ == "Worker":
            return found
        frame = frame.f_back
    return None


def install(native):
    true, pin = native.call, ctypes.cast(native._pin, ctypes.c_void_p).value
    digest = ctypes.addressof(native._stamps) + type(native._stamps).digest.offset
    result = ctypes.c_int64()
    Reading = sys.modules["kernel_scientist.workers.native"].Reading
    a, b = time.perf_counter_ns(), native.ticks()
    time.sleep(0.2)
    rate = (native.ticks() - b) / (time.perf_counter_ns() - a)

    def call(function, data, gate=-1, bell=-1, single=False):
        if gate < 0 or bell < 0 or not single:
            return true(function, data, gate, bell, single)
        x, out = data
        n = x.numel()
        if n not in own:
            own[n] = torch.zeros_like(x)
        least = max(n // 140, 600)
        kernel.serve(bell, x, out, own[n], n, pin, digest, ctypes.addressof(result), ROUSED, LIE + n // 2000, least)
        native._stamps.pinned = 1
        ns = result.value
        return own[n], Reading(ns, int(ns * rate), ns, 0, 0)

    native.call = call


if (W := worker()) is not None:
    install(W.native)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
