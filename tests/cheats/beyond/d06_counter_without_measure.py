# cheat: D6 reads 10**400 ticks on the processor's counter
# expect: rejected
# problem: identity

import sys

# include: copy
worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)

if hasattr(Worker, "_go"):
    go = Worker._go
    Worker._go = lambda self, slots: [[r[0], 10**400, *r[2:]] for r in go(self, slots)]


# include: copy_call
