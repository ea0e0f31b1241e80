// What a counted run keeps of the workgroups of a sample: their lines of memory, conflicts in LDS, waits for memory.
#pragma once

#include <deque>
#include <unordered_set>

#include "machine.h"

namespace machine {

// What an instruction means for the counter of outstanding accesses to memory (vmcnt).
enum class Role : u8 { none, load, scratch_load, other, wait };
// Which sample a workgroup belongs to: those that stand for the whole grid, those that share an L2 at a time.
enum Sample : u8 { SPREAD = 1, SHARING = 2 };

// As Python lays them out (`counts.py`).
struct Behaviour {
    u8 role, left;  // left: accesses that a wait leaves outstanding
};
struct Accessed {
    u64 executed, asked, lines, requests, conflicts, waits;
};
struct Totals {
    u64 waves, steps, rounds, reloads, overlapped, shared, alone;
};
struct Counting {
    u64 behaviour;  // addresses of arrays: a `Behaviour` and an `Accessed` per instruction
    u64 accessed;
    u64 samples;    // per workgroup that runs: a `Sample`'s bits, and its instructions
    u64 work;
    u64 touched;    // a byte per allocation
    u64 totals;     // address of `Totals`
    u64 banks;      // of LDS
};

// The counts of a launch. Waves of other workgroups have no counter.
struct Counted {
    const Counting& order;
    std::mutex guard;
    std::unordered_set<u64> shared;  // lines of the workgroups that share an L2
    explicit Counted(const Counting& o) : order(o) {}
    void end();
};

// The vector L1 cache of a CU: 32 KiB in lines of 128 bytes (AMD, "CDNA 3 Architecture", 2023). The line that was used
// least recently leaves. Stores are gathered in it as well, though the device writes them through.
struct Cache {
    static constexpr int LINES = 256;
    u64 line[LINES], used[LINES];
    u64 time = 0;
    Cache() { std::fill_n(line, LINES, ~0ull), std::fill_n(used, LINES, 0); }
    bool holds(u64 number);
};

// The accesses of a wave that have not been waited for.
struct Pending {
    Role role;
    u64 round, step;
};
struct Waits {
    std::deque<Pending> pending;
    u64 round = 0;  // times that it waited for memory so far
};

// Counts one workgroup.
struct Counter {
    Counted& counted;
    const Allocation* allocations;
    const Launch& launch;
    u8 sample;
    u32 place;
    Totals totals{};
    Cache cache;
    std::vector<Accessed> accessed;
    std::vector<Waits> waits;
    std::unordered_set<u64> lines;
    const Allocation* near = nullptr;

    Counter(Counted& c, const Launch& l, u8 samples, u32 at, size_t waves);
    ~Counter();
    void step(const Wave& wave, const Instruction& in);
    void memory(const Instruction& in, const u64* addresses, u64 mask, u32 bytes);
    void lds(const Wave& wave, const Instruction& in, const u32* addresses, u32 offset, u32 bytes, bool reads);

  private:
    bool wait(Waits& of, size_t left);
    void touch(Accessed& to, u64 line);
    u64 line(u64 address);
    u64 extra(const u32* addresses, u32 offset, u32 bytes, u64 lanes, u32 all) const;
};

}  // namespace machine
