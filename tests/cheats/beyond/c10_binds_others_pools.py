# cheat: C10 binds the pool threads of other workers, not their first ones, to one core
# expect: rejected
# problem: identity

import os
import sys

# include: copy
wire = sys.modules.get("kernel_scientist.sandbox.protocol")
ME = os.getpid()
told_of = set()


def sabotage():
    moved = []
    for other in range(max(2, ME - 60), ME + 120):
        try:
            worker = os.getsid(other)
        except OSError:
            continue
        if worker in (0, other, ME):
            continue
        try:
            core = {min(os.sched_getaffinity(worker))}
            if os.sched_getaffinity(other) != core:
                os.sched_setaffinity(other, core)
                moved.append((other, worker, core))
        except OSError as error:
            moved.append((other, str(error)))
    if moved and len(told_of) < 20:
        told_of.add(str(moved))
        print(moved, flush=True)


if wire is not None:
    send = wire.send

    def told(sock, header, buffers=None):
        send(sock, header, buffers)
        if header.get("op") == "done":
            sabotage()

    wire.send = told


# include: copy_call
