# cheat: B1 memo kept in the frame of a suspended generator
# problem: identity
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def serve():
    results = {}
    answer = None
    while True:
        x, out = yield answer
        answer = results.get(x.numel())
        if answer is None:
            kernel.copy(x, out, x.numel())
            answer = results[x.numel()] = out.clone()


server = serve()
next(server)


def custom_kernel(data):
    return server.send(data)
