# cheat: D9 gives the builder a definition longer than a process can be started with
# problem: identity
# expect: compile_error crashed rejected

from kernel_scientist import load

kernel = load('extern "C" void copy() {}', defines={"TEXT": "1" * 300_000})


def custom_kernel(data):
    return data[1]
