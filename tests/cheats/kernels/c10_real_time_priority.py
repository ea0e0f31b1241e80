# cheat: C10 asks for a real-time scheduling class and the highest priority
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# It may ask, and is refused or not; a contestant timed next to it, and itself, run as before on one thread.

import os

# include: copy
for ask in (
    lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)),
    lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
):
    try:
        ask()
    except OSError:
        pass


# include: copy_call
