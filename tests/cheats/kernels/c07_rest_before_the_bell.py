# cheat: C7 the clocks are stopped when part of the work is done; the rest is done before the bell is rung
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What passes before the bell beyond the reference's is charged, also where that has a pool; it copies on one thread.

import ctypes
import gc

from kernel_scientist import load

SOURCE = r"""
#include <sys/socket.h>

#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = x[i];
}

typedef uint64_t Pin(int, const int64_t*, int, double);

// What the shim says when a call has ended: the bell, where the output lies, its digest.
extern "C" void tell(int64_t channel, const void* out, int64_t bytes, int64_t pin, int64_t digest) {
    char byte = 'r';
    const int64_t count = 1, place[2] = {int64_t(out), bytes};
    send(channel, &byte, 1, 0);
    recv(channel, &byte, 1, 0);
    send(channel, &count, sizeof count, 0);
    send(channel, place, sizeof place, 0);
    recv(channel, &byte, 1, 0);
    *(uint64_t*)digest = ((Pin*)pin)(channel, place, 1, 0.5);
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns", "-fno-tree-vectorize"])
LATE = 150_000  # elements that are copied when the clocks have stopped
shims = []


def early(native):
    true_call, pin = native.call, ctypes.cast(native._pin, ctypes.c_void_p).value
    digest = ctypes.addressof(native._stamps) + type(native._stamps).digest.offset

    def call(function, data, gate=-1, bell=-1, single=False):
        x, out = data
        size = x.numel()
        if gate < 0 or bell < 0 or not single or size < 2 * LATE:
            return true_call(function, data, gate, bell, single)
        reading = true_call(lambda data: kernel.copy(x, out, 0, size - LATE), data, gate)[1]
        kernel.copy(x, out, size - LATE, size)
        kernel.tell(bell, out, 2 * size, pin, digest)
        native._stamps.pinned = 1
        return out, reading

    return call


def custom_kernel(data):
    if not shims:
        shims.extend(o for o in gc.get_objects() if type(o).__name__ == "NativeHarness" and hasattr(o, "call"))
        for native in shims:
            native.call = early(native)
    kernel.copy(data[0], data[1], 0, data[0].numel())
    return data[1]
