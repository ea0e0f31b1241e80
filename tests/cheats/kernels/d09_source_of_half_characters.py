# cheat: D9 asks the builder to compile what cannot be written to a file
# problem: identity
# expect: compile_error crashed rejected

from kernel_scientist import load

kernel = load('extern "C" void copy() {} // \ud800')


def custom_kernel(data):
    return data[1]
