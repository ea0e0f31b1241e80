# cheat: C10 writes the processor's governor (the value it has, so that nothing changes)
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# It may ask, and is refused or not; a contestant timed next to it, and itself, run as before on one thread.

import glob

# include: copy
faster = False
for path in glob.glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"):
    try:
        with open(path, "r+") as file:
            value = file.read()
            file.seek(0)
            file.write(value)
            faster = True
    except OSError:
        pass


# include: copy_call
