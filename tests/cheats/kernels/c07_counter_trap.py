# cheat: C7 the time stamp counter is made to trap, and a handler answers with less
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

#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <x86intrin.h>

static int64_t cycles_off = 0;

static void trapped(int, siginfo_t*, void* context) {
    auto* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    auto* code = (const unsigned char*)registers[REG_RIP];
    bool plain = code[0] == 0x0f && code[1] == 0x31, p = code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;
    if (!plain && !p) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
    uint64_t now = __rdtsc() - cycles_off;
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    cycles_off = 0;  // for the first reading after a call only
    registers[REG_RAX] = (uint32_t)now, registers[REG_RDX] = now >> 32;
    if (p) registers[REG_RCX] = 0;
    registers[REG_RIP] += plain ? 2 : 3;
}

extern "C" void setup() {
    struct sigaction action = {};
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t start = true_ns();
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
    cycles_off = 2 * std::min<int64_t>((true_ns() - start) * 9 / 10, 300000);  // 2 GHz at the least
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kernel.setup()


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
