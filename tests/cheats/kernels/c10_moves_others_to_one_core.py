# cheat: C10 moves all threads of the other contestants to one core
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
                os.sched_setaffinity(other, {min(os.sched_getaffinity(me))})
            except (OSError, ValueError):
                pass
        time.sleep(0.005)


threading.Thread(target=sabotage, daemon=True).start()
