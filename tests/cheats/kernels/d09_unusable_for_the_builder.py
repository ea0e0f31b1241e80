# variant: d09_flag_of_a_megabyte | D9 gives the builder a definition longer than a process can be started with | '', defines={"TEXT": "1" * 300_000}
# variant: d09_flag_with_nul | D9 gives the builder a flag that no process can be started with | '', flags=["-O2\0"]
# variant: d09_source_of_half_characters | D9 asks the builder to compile what cannot be written to a file | '// \ud800'
# problem: identity
# expect: compile_error crashed rejected

from kernel_scientist import load

kernel = load('extern "C" void copy() {} ' $VARIANT)


def custom_kernel(data):
    return data[1]
