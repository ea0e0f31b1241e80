# variant: d09_log_becomes_a_link | D9 puts a link in the place of its own log, so that another file is quoted as its words | os.symlink(os.path.abspath(kernel_scientist.__file__), name + ".new")
# variant: d09_log_becomes_a_pipe | D9 puts a named pipe in the place of its own log, so that who reads the log waits for ever | os.mkfifo(name + ".new")
# problem: identity
# expect: crashed rejected

import os

import kernel_scientist


def custom_kernel(data):
    for name in os.listdir("."):
        if name.endswith(".log"):
            $VARIANT
            os.replace(name + ".new", name)
    os.abort()
