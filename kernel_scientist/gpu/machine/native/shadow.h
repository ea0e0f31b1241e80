// What a checking run knows of memory: how the twin's bytes differ, where that came from, who used which byte.
//
// A checking run executes each wave twice. The runs differ only in what is undefined: memory that nobody wrote, values
// that depend on the order of waves. A byte is undefined exactly if the two runs have different values there.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "machine.h"

namespace machine {

constexpr u32 NOBODY = ~0u;

enum class Cause : u32 {
    none, pointer, unset_register, unset_lds, unset_scratch, unset_memory, race_read, race_write,
    read_outside, write_outside, write_read_only, lds_outside, scratch_outside, jump, refused, barriers, deadlock, trap
};
// How an undefined value showed.
enum class Reach : u32 { not_yet, address, branch, output, at_once };

// A fault, or where an undefined value comes from: that is a fault as soon as something depends on it.
struct Record {
    u32 kind, launch, instruction, lane, wave, group;
    u32 other_instruction, other_lane, other_wave, other_group;  // who else used the place
    u32 reach, reached_at, groups, last_group;
    u64 lanes, address, start;  // start: of the allocation that is meant, 0 if none is
};
constexpr u32 POINTER = 1;  // number of the record of all addresses: they differ between the runs and are defined

// A use of memory: an instruction of a wave between two barriers and two releases.
struct Event {
    u32 group, wave, epoch, sequence, instruction;
    bool atomic, quiet;  // quiet: it stored what was there already
    u32 several = 0;     // number of a list of atomic operations of several waves that this stands for
};

constexpr u32 PAGE = 4096;
constexpr u64 MOST_FILLED = 256u << 20;  // bytes of what nobody wrote that `settle` fills: a pattern takes up memory
struct Values {
    u8 delta[PAGE];          // the first run's byte xor the twin's
    u32 origin[PAGE / 4];    // number of a record, for the bytes of a word that differ; 0: nobody wrote them
};
// Of LINE bytes, events: the one that all stores there are ordered before or equal to, MIXED if there is none such; the
// last one that stored; and two of different waves that read.
constexpr u32 LINE = 64, MIXED = ~0u;
struct Line {
    u32 sole = 0, latest = 0, reader = 0, earlier = 0;
};
// Per byte the last writer, as `cell` makes it, and what it replaced.
struct Uses {
    u32 writer[PAGE];
    u8 before[PAGE];
    Line lines[PAGE / LINE];
};
inline u32 cell(u32 event, u32 lane) { return event << 6 | lane; }

class Shadow {
   public:
    std::vector<Record> records{2};
    size_t counted = 2;  // records before this one are not counted again: a launch is repeated

    Values* find(u64 address) {
        const u64 page = address / PAGE;
        Recent& recent = recent_[page % RECENT];
        if (page == recent.page) return recent.values;
        const auto found = values_.find(page);
        recent = {page, found == values_.end() ? unwritten(page) : found->second.get()};
        return recent.values;
    }
    Values& make(u64 address);
    bool empty() const { return values_.empty() && unwritten_.empty(); }
    // Xor the twin's difference onto bytes. Returns whether there was one.
    bool apply(u64 address, u32 bytes, u8* to);
    // Set the twin's difference, and where it came from.
    void set(u64 address, u32 bytes, const u8* delta, u32 origin);
    u32 origin(u64 address, u32 bytes);
    void poison(u64 address, u64 bytes, u64 seed);
    void define(u64 address, u64 bytes);
    // Define bytes, and fill those that nobody wrote with a pattern.
    void settle(u64 address, u64 bytes, u8 pattern);
    // Turn the sign of all that nobody wrote: what is too small to show in one run is too large in the other.
    void flip();
    bool unused() const;  // whether an undefined value was read, and nothing depends on it so far
    // Number of the record of a kind at an instruction, made at its first lane; counts the lane.
    u32 record(Cause kind, u32 launch, u32 instruction, u32 group, u32 wave, u32 lane, u64 address, u64 start, const Event* other, u32 other_lane);
    void reach(u32 origin, Reach how, u32 instruction) {
        if (origin <= POINTER || records[origin].reach) return;
        records[origin].reach = u32(how), records[origin].reached_at = instruction;
    }

   private:
    // Pages that nobody wrote, up to the one behind the last. They get values as soon as one is looked for: a program may
    // allocate far more than it uses.
    struct Unwritten {
        u64 end, seed;
        bool flipped;
    };
    Values* unwritten(u64 page);
    // Take pages out of those ranges; call `act(first, end)` for each part that was in one.
    template <class F> void leave(u64 first, u64 end, F act);
    // Forget all that is known of these pages: they are defined.
    void forget(u64 first, u64 end);
    std::map<u64, Unwritten> unwritten_;  // by the first page
    std::unordered_map<u64, std::unique_ptr<Values>> values_;
    std::unordered_map<u64, u32> numbers_;
    static constexpr u64 RECENT = 256;
    struct Recent {
        u64 page = ~0ull;
        Values* values = nullptr;
    } recent_[RECENT];  // pages that were looked for lately
};

constexpr u64 GOLDEN = 0x9e3779b97f4a7c15ull;
// Numbers that differ from zero in each byte, whose signs vary, and which are finite in nearly every format.
inline u32 odd_word(u64& state) {
    u64 x = state += GOLDEN;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull, x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    if ((x >> 60) < 2) return ~0u;  // NaN in most formats
    return 0x44444444u | (u32(x) & 0x8f8f8f8fu);
}

}  // namespace machine
