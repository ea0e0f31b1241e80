// What a counted run keeps of the workgroups of a sample: their lines of memory, conflicts in LDS, waits for memory.
#pragma once

#include <deque>
#include <memory>
#include <vector>

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
    std::vector<u64> shared;  // lines of the workgroups that share an L2, some of them several times
    explicit Counted(const Counting& o) : order(o) {}
    void end();
};

// The vector L1 cache of a CU: 32 KiB in lines of 128 bytes (AMD, "CDNA 3 Architecture", 2023). The line that was used
// least recently leaves. Stores are gathered in it as well, though the device writes them through.
class Cache {
  public:
    Cache();
    // Use a line. Returns whether it was there.
    bool holds(u64 number);

  private:
    static constexpr int LINES = 256, HEADS = 512;
    static constexpr u16 NONE = LINES;  // no place; in the two lists below, their end
    u64 line[LINES];
    u16 heads[HEADS], next[LINES];          // places of the lines with the same hash
    u16 newer[LINES + 1], older[LINES + 1];  // a ring by last use; NONE is between the newest and the oldest
    u16& head(u64 number) { return heads[number * 0x9e3779b97f4a7c15 >> 55]; }
    void renew(u16 at);
};

// The accesses of a wave that have not been waited for.
struct Pending {
    Role role;
    u64 round, step;
};
struct Waits {
    std::deque<Pending> pending;
    u64 round = 0, steps = 0;  // times that it waited for memory so far, and its instructions
};

// The conflicts of one access to LDS. In a loop the next one is often the same, moved by some words; so are its conflicts.
struct Pattern {
    u64 lanes = 0, conflicts = 0;
    u32 start = 0;            // address of the first lane, modulo a word
    u32 relative[LANES] = {};  // addresses of the active lanes, from the first one's
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
    std::vector<std::unique_ptr<Pattern>> patterns;  // of the last access to LDS, per instruction
    std::vector<u64> lines;                          // that its L1 did not hold
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
    bool crosses(u64 address, u32 bytes) const;
    u64 conflicts(const u32* addresses, u32 offset, u32 bytes, bool reads, u64 exec) const;
    u64 extra(const u32* addresses, u32 offset, u32 bytes, u64 lanes, u32 all) const;
};

}  // namespace machine
