# cheat: C7 every object's GOT entry of clock_gettime is pointed at a false clock
# expect: rejected
# problem: identity
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

static int patch(dl_phdr_info* info, size_t, void*) {
    if (std::strstr(info->dlpi_name, "vdso")) return 0;
    const ElfW(Sym)* symbols = nullptr;
    const char* names = nullptr;
    const ElfW(Rela)* tables[2] = {};
    size_t bytes[2] = {};
    for (int p = 0; p < info->dlpi_phnum; ++p) {
        if (info->dlpi_phdr[p].p_type != PT_DYNAMIC) continue;
        for (auto* d = (const ElfW(Dyn)*)(info->dlpi_addr + info->dlpi_phdr[p].p_vaddr); d->d_tag; ++d) {
            if (d->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym)*)d->d_un.d_ptr;
            if (d->d_tag == DT_STRTAB) names = (const char*)d->d_un.d_ptr;
            if (d->d_tag == DT_JMPREL) tables[0] = (const ElfW(Rela)*)d->d_un.d_ptr;
            if (d->d_tag == DT_PLTRELSZ) bytes[0] = d->d_un.d_val;
            if (d->d_tag == DT_RELA) tables[1] = (const ElfW(Rela)*)d->d_un.d_ptr;
            if (d->d_tag == DT_RELASZ) bytes[1] = d->d_un.d_val;
        }
    }
    if (!symbols || !names) return 0;
    for (int t = 0; t < 2; ++t)
        for (size_t i = 0; tables[t] && i < bytes[t] / sizeof(ElfW(Rela)); ++i) {
            auto type = ELF64_R_TYPE(tables[t][i].r_info);
            if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
            if (std::strcmp(names + symbols[ELF64_R_SYM(tables[t][i].r_info)].st_name, "clock_gettime")) continue;
            void** slot = (void**)(info->dlpi_addr + tables[t][i].r_offset);
            writable(slot, 8);
            *slot = (void*)false_clock;
        }
    return 0;
}

extern "C" void setup() { dl_iterate_phdr(patch, nullptr); }

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t start = true_ns();
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
    stolen += std::min<int64_t>((true_ns() - start) * 9 / 10, 300000);
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kernel.setup()


# include: copy_call
