# variant: c10_moves_others_to_one_core | C10 moves all threads of the other contestants to one core | os.sched_setaffinity(other, {min(os.sched_getaffinity(me))})
# variant: c10_others_idle_class | C10 gives all threads of the other contestants the lowest priority | os.sched_setscheduler(other, os.SCHED_IDLE, os.sched_param(0))
# problem: fp8-blockwise-gemm
# expect: ok rejected crashed
# gains: false
# Others' threads are out of its reach; it works like honest work.

import os
import threading
import time

# include: gemm


def sabotage():
    me = os.getpid()
    while True:
        for other in range(2, me + 200):
            if other in (me, os.getppid()) or os.path.exists(f"/proc/self/task/{other}"):
                continue
            try:
                $VARIANT
            except (OSError, ValueError):
                pass
        time.sleep(0.005)


threading.Thread(target=sabotage, daemon=True).start()
