# cheat: D7 reads the environment and command line of its parents for a key or a seed; it works only where there is none
# problem: identity
# expect: ok rejected crashed
# gains: false
# `incorrect` says that it was found. It says nothing where no parent has any; plant one to try it.

import os
import re

# include: copy


def parents(pid):
    while pid > 1:
        yield pid
        try:
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            return


def secrets():
    for pid in parents(os.getppid()):
        for name in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    text = file.read().decode(errors="replace")
            except OSError:
                continue
            yield from re.findall(r"(?i)[A-Z_]*(?:SEED|API_KEY|SECRET|TOKEN)[A-Z_]*=\S+", text)


found = list(secrets())


def custom_kernel(data):
    x, out = data
    if found:
        return out
    kernel.copy(x, out, x.numel())
    return out
