# cheat: C7 the native function that times the call begins with a jump to one that says less, by both clocks
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# No more may be hidden than the clocks' noise; it copies on both threads like honest work.

import ctypes
import gc

from kernel_scientist import load

SOURCE = r"""
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

struct Stamps {
    int64_t start_ns, end_ns;
    uint64_t start_ticks, end_ticks;
    int64_t cpu_ns, switches;
    uint64_t digest;
    int64_t pinned;
};
static void* (*call)(void*, void*);
static int64_t last_end = 0;

static int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void handshake(int channel) {
    char byte = 'r';
    if (channel >= 0 && send(channel, &byte, 1, 0) == 1) recv(channel, &byte, 1, 0);
}

static void* false_call(void* kernel, void* data, Stamps* stamps, int gate, int bell, int, double) {
    handshake(gate);
    handshake(gate);
    int64_t start = now();
    uint64_t ticks = __rdtsc();
    void* output = call(kernel, data);
    uint64_t passed = __rdtsc() - ticks;
    int64_t ns = now() - start, said = ns;
    handshake(bell);
    int64_t nowhere[2] = {-1, 0};  // the digest is left to Python
    if (bell >= 0) send(bell, nowhere, 8, 0);
    bool row = start - last_end < 150000;  // right after another one: true
    last_end = start + ns;
    if (!row) said = std::max<int64_t>({int64_t((ns - 45000) / 1.08), ns / 8, 2500});
    said = std::min(said, ns);
    *stamps = {start, start + said, ticks, ticks + uint64_t(double(passed) / ns * said), said, 0, 0, 0};
    return output;
}

extern "C" void patch(int64_t function, int64_t one_argument_call) {
    call = (void* (*)(void*, void*))one_argument_call;
    uintptr_t page = (uintptr_t)function & ~4095ull;
    if (mprotect((void*)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return;
    unsigned char code[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    void* target = (void*)false_call;
    std::memcpy(code + 2, &target, 8);
    std::memcpy((void*)function, code, 12);
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)

for o in gc.get_objects():
    if type(o).__name__ == "NativeHarness" and hasattr(o, "_call"):
        place = ctypes.cast(o._call, ctypes.c_void_p).value
        kernel.patch(place, ctypes.cast(ctypes.pythonapi.PyObject_CallOneArg, ctypes.c_void_p).value)
        break


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
