# cheat: D13 leaves a System V segment behind that outlives every worker and counts as nobody's memory
# problem: identity
# expect: ok rejected crashed
# gains: false
# Such segments are refused, or it gains nothing by them; it copies on one thread.

import ctypes

# include: copy

libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
size = 64 << 20
segment = libc.shmget(0, size, 0o1600)
found = libc.shmget(4242, 4096, 0o666)  # what an earlier worker left
if found < 0:
    libc.shmget(4242, 4096, 0o1666)
print("segment", segment, "of an earlier worker:", found)
if segment >= 0:
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, size)
    libc.shmdt(ctypes.c_void_p(address))


# include: copy_call
