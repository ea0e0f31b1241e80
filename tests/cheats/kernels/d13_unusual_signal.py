# cheat: D13 dies of a signal that has no name
# problem: identity
# expect: crashed rejected

import signal
import threading

# include: copy


def custom_kernel(data):
    signal.pthread_kill(threading.get_ident(), 40)
    return data[1]
