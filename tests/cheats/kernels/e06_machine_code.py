# cheat: E6 ready-made machine code in executable memory, no source
# problem: identity
# expect: ok rejected crashed
# label: library

import ctypes
import mmap

CODE = bytes.fromhex("4889d1f3a4c3")  # mov rcx, rdx; rep movsb; ret (x86-64)
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(CODE)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
copy = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(address)


def custom_kernel(data):
    x, out = data
    copy(out.data_ptr(), x.data_ptr(), 2 * x.numel())
    return out
