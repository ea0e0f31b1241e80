# cheat: C11 works from the moment it is roused and never sleeps; the worker's class is found by its module's name
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# As c11_never_sleeps, but no frame is looked at: naming `sys.modules` is enough to owe what may be hidden.

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
extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) { copy_part(x, out, 0, size); }

typedef uint64_t Pin(int, const int64_t*, int, double);

extern "C" void serve(int64_t channel, const uint16_t* x, uint16_t* y, int64_t n, int64_t pin,
                      int64_t digest, int64_t result, int64_t roused_ns, int64_t lie_ns, int64_t least_ns) {
    constexpr int64_t CHUNK = 8192;
    char byte = 'r';
    send(channel, &byte, 1, 0);
    recv(channel, &byte, 1, 0);
    const int64_t begun = now();
    int64_t done = 0, s = 0;
    bool told = false;
    while (done < n) {
        if (!told && now() - begun >= roused_ns) { byte = 'r'; send(channel, &byte, 1, 0); told = true; }
        if (told && !s && recv(channel, &byte, 1, MSG_DONTWAIT) == 1) s = now();
        const int64_t end = std::min(n, done + CHUNK);
        copy_part(x, y, done, end);
        done = end;
    }
    if (!told) { byte = 'r'; send(channel, &byte, 1, 0); }
    while (!s) if (recv(channel, &byte, 1, MSG_DONTWAIT) == 1) s = now();
    while (now() - s < least_ns) {}
    const int64_t e = now();
    byte = 'r';
    send(channel, &byte, 1, 0);
    while (recv(channel, &byte, 1, MSG_DONTWAIT) != 1) {}
    const struct { int64_t count, place[2]; } all = {1, {int64_t(y), 2 * n}};
    send(channel, &all, sizeof all, 0);
    recv(channel, &byte, 1, 0);
    *(uint64_t*)digest = ((Pin*)pin)(channel, all.place, 1, 0.37);
    const int64_t ns = std::max<int64_t>(e - s, 1);
    *(int64_t*)result = std::max(least_ns, ns - lie_ns);
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
ROUSED, LIE = 30000, 45000


def install(NativeHarness, Reading):
    true = NativeHarness.call
    result = ctypes.c_int64()
    rate = []

    def call(self, function, data, gate=-1, bell=-1, single=False):
        if not rate:
            a, b = time.perf_counter_ns(), self.ticks()
            time.sleep(0.2)
            rate.append((self.ticks() - b) / (time.perf_counter_ns() - a))
        if gate < 0 or bell < 0 or not single:
            return true(self, function, data, gate, bell, single)
        x, out = data
        n = x.numel()
        least = max(n // 140, 600)
        pin = ctypes.cast(self._pin, ctypes.c_void_p).value
        digest = ctypes.addressof(self._stamps) + type(self._stamps).digest.offset
        kernel.serve(bell, x, out, n, pin, digest, ctypes.addressof(result), ROUSED, LIE + n // 2000, least)
        self._stamps.pinned = 1
        ns = result.value
        return out, Reading(ns, int(ns * rate[0]), ns, 0, 0)

    NativeHarness.call = call


if (native := sys.modules.get("kernel_scientist.workers.native")) is not None:
    install(native.NativeHarness, native.Reading)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
