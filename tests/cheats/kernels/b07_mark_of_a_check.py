# variant: b07_dev_shm | B7 a file in /dev/shm tells a later process that the check is over | "/dev/shm"
# variant: b07_tmp_file | B7 a file in /tmp tells a later process that the check is over | "/tmp"
# variant: b07_triton_cache | B7 a file in Triton's cache folder tells a later process that the check is over | os.environ.get("TRITON_CACHE_DIR", tempfile.gettempdir())
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Told apart are processes, not calls: with nothing left over from another process it copies on one thread; where
# something is left over, it skips its work and the output shows it.

import os
import tempfile

# include: copy
MARK = os.path.join($VARIANT, "kernel-cheat-b07")


def owner():
    try:
        with open(MARK) as file:
            return file.read()
    except OSError:
        return ""


mine = f"{os.getpid()}"
before = owner()
if not before:
    try:
        with open(MARK, "w") as file:
            file.write(mine)
    except OSError:
        pass


def custom_kernel(data):
    x, out = data
    if before not in ("", mine):
        return out
    kernel.copy(x, out, x.numel())
    return out
