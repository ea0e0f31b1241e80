# cheat: D12 sets the environment of its process natively, for whoever reads or inherits it
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Inputs, expected outputs and other contestants live in other processes; it works on one thread.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstdlib>

__attribute__((constructor)) static void sabotage() {
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("GOMP_SPINCOUNT", "1000000000", 1);
    setenv("OMP_WAIT_POLICY", "active", 1);
    setenv("LD_BIND_NOW", "1", 1);
    setenv("PYTHONPATH", ".", 1);
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
# include: copy_loop_end
