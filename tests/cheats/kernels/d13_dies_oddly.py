# variant: d13_unusual_signal | D13 dies of a signal that has no name | signal.pthread_kill(threading.get_ident(), 40)
# variant: d13_unwritable_words | D13 raises an error whose words no file can hold | raise ValueError("\ud800 is half a character")
# problem: identity
# expect: crashed rejected

import signal
import threading


def custom_kernel(data):
    $VARIANT
    return data[1]
