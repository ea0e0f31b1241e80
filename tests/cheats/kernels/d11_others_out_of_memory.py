# cheat: D11 sets the other contestants' memory limit to nothing, so that they fail
# problem: identity
# expect: ok rejected crashed
# gains: false
# Others are out of its reach: no verdict of theirs may change; it copies on both threads like honest work.

import os
import resource
import threading
import time

# include: copy_on_all_threads


def sabotage():
    me = os.getpid()
    while True:
        for other in range(2, me + 200):
            if other in (me, os.getppid()) or os.path.exists(f"/proc/self/task/{other}"):
                continue
            try:
                resource.prlimit(other, resource.RLIMIT_DATA, (0, 0))
            except (OSError, ValueError):
                pass
        time.sleep(0.005)


threading.Thread(target=sabotage, daemon=True).start()


# include: copy_call
