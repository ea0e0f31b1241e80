# cheat: C7 libc's own clock_gettime begins with a jump to a false clock
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Clocks inside the worker decide nothing: the judge's own count, and the kernel copies on one thread.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <algorithm>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t stolen = 0;  // nanoseconds

static int64_t true_ns() {
    timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static int false_clock(clockid_t id, timespec* now) {
    int status = syscall(SYS_clock_gettime, id, now);
    if (status) return status;
    int64_t ns = now->tv_sec * 1000000000ll + now->tv_nsec - stolen;
    now->tv_sec = ns / 1000000000, now->tv_nsec = ns % 1000000000;
    return 0;
}

static inline void writable(const void* place, int64_t bytes) {
    uintptr_t page = (uintptr_t)place & ~4095ull, end = ((uintptr_t)place + bytes + 4095) & ~4095ull;
    mprotect((void*)page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static inline void detour(void* function) {  // mov rax, false_clock; jmp rax
    unsigned char code[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    void* target = (void*)false_clock;
    std::memcpy(code + 2, &target, 8);
    std::memcpy(function, code, 12);
}


extern "C" void setup() {
    if (void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD))
        if (void* function = dlsym(libc, "clock_gettime")) writable(function, 12), detour(function);
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t start = true_ns();
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
    stolen += std::min<int64_t>((true_ns() - start) * 9 / 10, 300000);
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kernel.setup()


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
