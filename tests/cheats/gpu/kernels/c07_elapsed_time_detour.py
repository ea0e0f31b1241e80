# cheat: C7 machine code over the runtime's own function: every interval is a microsecond
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What the events do not tell has passed by the judge's own clock.

import ctypes
import platform
import struct

# include: triton_copy


PAGE = 4096
CODE = b"\xc7\x07" + struct.pack("<f", 0.001) + b"\x31\xc0\xc3"  # x86-64: *ms = 0.001; return 0


def detour():
    with open("/proc/self/maps") as maps:
        paths = {line[line.index("/") :].strip() for line in maps if "libcudart" in line or "libamdhip64" in line}
    for path in paths:
        library = ctypes.CDLL(path)
        name = "hipEventElapsedTime" if "amdhip" in path else "cudaEventElapsedTime"
        place = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        libc = ctypes.CDLL(None)
        start, size = ctypes.c_void_p(place // PAGE * PAGE), ctypes.c_size_t(2 * PAGE)
        if libc.mprotect(start, size, 7) == 0:
            ctypes.memmove(place, CODE, len(CODE))


if platform.machine() == "x86_64":
    try:
        detour()
    except OSError:  # nothing of the runtime's place can be seen
        pass


def custom_kernel(data):
    x, out = data
    copy(x, out)
    return out
