# cheat: B9 a window of the cache in which its inputs persist, through whatever sweeps it
# problem: identity
# expect: ok incorrect rejected
# gains: false
# stopped by: inputs are used once; persisting lines are released before the sweep
# No input is read twice: what persists is of no use, or the cache is reset before it is swept.

import ctypes

import torch
# include: triton_copy


LIMIT, WINDOW, NORMAL, PERSISTING = 6, 1, 0, 2  # cudaLimitPersistingL2CacheSize, cudaLaunchAttributeAccessPolicyWindow


class Window(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("rest", ctypes.c_char * 64),
    ]


def runtime():
    """CUDA's; where ROCm's is loaded there are no such windows."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line[line.index("/") :].strip() for line in maps if "libcudart" in line}
    except OSError:  # nothing of it can be seen
        return None
    return ctypes.CDLL(min(paths)) if paths else None


library = runtime()


def persist(tensor):
    size = min(tensor.nbytes, 16 << 20)
    window = Window(tensor.data_ptr(), size, 1.0, PERSISTING, NORMAL)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    library.cudaDeviceSetLimit(LIMIT, ctypes.c_size_t(32 << 20))
    library.cudaStreamSetAttribute(stream, WINDOW, ctypes.byref(window))


def custom_kernel(data):
    x, out = data
    copy(x, out)
    if library is not None:
        persist(x)  # its address comes again
    return out
