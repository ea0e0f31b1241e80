# cheat: D9 gives the builder a flag that no process can be started with
# problem: identity
# expect: compile_error crashed rejected

from kernel_scientist import load

kernel = load('extern "C" void copy() {}', flags=["-O2\0"])


def custom_kernel(data):
    return data[1]
