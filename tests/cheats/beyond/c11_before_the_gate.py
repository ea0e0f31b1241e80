# cheat: C11 does the work while the verifier writes the inputs, before it opens the gate
# expect: rejected
# problem: identity
# What a worker spends before the gate is charged; it copies on one thread.

import gc
import socket

from kernel_scientist import load

SOURCE = r"""
#include <unistd.h>

#include <cstdint>

static uint16_t before;

extern "C" void remember(const uint16_t* x, int64_t size) { before = x[size + 8]; }

// Wait until the guard band behind the output is new, with little CPU time, then copy.
extern "C" void ahead(const uint16_t* x, uint16_t* out, int64_t size) {
    const volatile uint16_t* guard = out + size + 8;  // written last
    for (int i = 0; i < 100 && *guard == before; ++i) usleep(15);
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
# include: copy_loop_load
shims = []


def ready(data):
    return data[1]


def early(native):
    true_call = native.call

    def call(function, data, gate=-1, bell=-1, pin=False):
        if gate < 0 or bell < 0 or data[0].numel() < 500_000:
            return true_call(function, data, gate, bell, pin)
        x, out = data
        kernel.remember(out, x.numel())
        channel = socket.socket(fileno=gate)
        try:
            channel.send(b"r")
            kernel.ahead(x, out, x.numel())
            channel.recv(1)
            channel.send(b"r")
            channel.recv(1)
        finally:
            channel.detach()
        return true_call(ready, data, -1, bell, pin)

    return call


def custom_kernel(data):
    if not shims:
        shims.extend(o for o in gc.get_objects() if type(o).__name__ == "NativeHarness" and hasattr(o, "call"))
        for native in shims:
            native.call = early(native)
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
