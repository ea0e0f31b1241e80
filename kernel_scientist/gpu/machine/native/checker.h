// A checking run of a launch: each wave is executed twice, in step, and the two are compared after each instruction.
#pragma once

#include "memory.h"
#include "ordering.h"

namespace machine {

// What an instruction does to registers and memory; as Python packs it (`twin_effects.py`).
enum class Nature : u8 { other, load, store, atomic, barrier, release, acquire, matrix, one_lane, exec_zero, exec_set, move };
struct Effect {
    u8 nature, reserved;
    u16 addresses;  // of the registers that are read: how many are addresses; they come first
    u16 reads, writes;
    u32 first;      // in the list of registers: those that are read, and then those that are written
};
constexpr u32 SCALAR = 512;  // number of s0 in that list

// As Python fills it (`checking.py`).
struct CheckOrder {
    u32 scalars[32];  // the twin's, see `Order`
    u32 launch, reserved;
    u64 seed;
};

// Where an allocation lies in the twin's run: somewhere else, so that an access that leaves one tensor for another shows.
constexpr u64 REGION = 1ull << 35, REGIONS_END = 1ull << 46;

// One access of a lane.
struct Access {
    enum class Space : u8 { memory, lds, scratch };
    u64 address;
    int lane;
    u32 bytes;
    Space space;
    bool write, atomic, first, second;  // first, second: which of the runs made it
    bool writable;                      // whether a launch may write there at all
    bool ready;                         // whether an atomic operation's `b` holds the twin's bytes
    Access* same;                       // of an atomic operation: the first one of the instruction at its address
    u8* where;                          // null: outside
    u8 old[64], a[64], b[64];           // before; what is stored, and what the twin stores or reads
};

// A workgroup's LDS: of the first run, of the twin, and who used which byte.
struct SharedMemory {
    std::vector<u8> a, b;
    std::vector<u32> origin, writer;
    std::vector<u8> before;
    std::vector<Line> lines;
};

struct Twins {
    Wave a, b;
    std::vector<u32> registers_a, registers_b, origins;
    u32 scalar_origins[SCALARS] = {};
    std::vector<u8> scratch_a, scratch_b;
    std::vector<u32> scratch_origins;
    Clock clock;
    std::vector<std::pair<u32, u32>> events;  // by instruction: the clock's version and the number of the event
    u32 disagreements = 0, barrier = 0, polled = 0;
    u64 polled_address = 0, polled_at = 0;  // and after how many instructions
    // A state that the wave was in; if it comes back and memory did not change, the wave will never end.
    u64 done = 0, quiet = 0, quiet_version = 0;  // instructions, and how many before memory changed last
    u64 stuck_version = ~0ull;  // of memory, when that was found
    bool alone = false;         // whether it passed no barrier on the way
    u32 seen_pc = NOBODY, seen_epoch = 0, circle = 0;  // circle: the instruction at its end
    u64 seen_version = 0, seen_at = 0, visits = 0;
    std::vector<u32> seen;
    std::vector<u8> seen_scratch;
};

struct CheckedGroup {
    Group group;
    SharedMemory lds;
    std::vector<std::unique_ptr<Twins>> waves;
    Clock clock;
    u32 epoch = 1;
    explicit CheckedGroup(Launch& launch, u32 linear) : group(launch, linear) {}
};

// How a checking run ended; as in `checking.py`. Stuck: all waves that are left wait for each other.
enum class Outcome { ended, stuck, too_many };

class [[gnu::visibility("hidden")]] Checker : public Watch {
   public:
    Checker(Launch& launch, const CheckOrder& check, const u64* moved, const Effect* effects, const u16* registers, Shadow& shadow);
    // Run everything. A run backwards has other values in what is undefined, of the other sign.
    Outcome run(bool backwards);
    u64 suspects() const { return usage_->suspects; }
    // Put memory back to what it was before the launch; and after another run, add what was undefined after the first.
    void undo();
    void join();
    u8* place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write) override;
    void beyond(Wave& wave, u64 lanes, u64 base, u64 range, const u64* addresses) override;

    std::vector<u64> executed, lanes;
    u64 total = 0, ended = 0, started = 0;  // wave instructions, and workgroups that ended and that started

   private:
    struct Saved {
        u64 start;
        std::vector<u8> bytes, delta;
        std::vector<u32> origins;
        Values after{};
    };
    Launch& launch_;
    const CheckOrder& check_;
    const u64* moved_;
    const Effect* effects_;
    const u16* registers_;
    Shadow& shadow_;
    std::unique_ptr<Usage> usage_;
    std::unordered_map<u64, u32> regions_;  // allocation by region of the twin's addresses
    std::unordered_map<u64, Saved> saved_, earlier_;
    std::unordered_map<u64, u32> raced_;
    const Allocation* near_ = nullptr;
    u64 region_ = 0;     // the one that was looked for last, and its allocation
    u32 in_region_ = 0;
    u64 odd_ = 0;
    bool backwards_ = false;
    u32 sign_ = 0;     // turns the signs of what is undefined in a second run
    u64 version_ = 0;  // changes when memory does, or a wave ends

    // Of the instruction that is executed.
    CheckedGroup* group_ = nullptr;
    Twins* now_ = nullptr;
    const Instruction* in_ = nullptr;
    const Effect* effect_ = nullptr;
    std::vector<Access> accesses_;
    u32 count_ = 0, cursor_ = 0;
    u64 masks_[256];          // by register that is read: lanes that differ
    u32 scalar_origin_ = 0;   // of a scalar register that is read and differs
    bool scalar_differs_ = false;
    bool any_ = false;        // whether anything that is read differs
    u64 exec_a_ = 0, exec_b_ = 0;
    u32 loaded_[LANES] = {};       // origins of what a lane loaded
    u32 loaded_any_ = 0;
    u32 mine_[2] = {NOBODY, NOBODY};  // its events, loud and quiet
    u32 asked_ = NOBODY;              // an event, and whether it is ordered before
    bool answer_ = false;

    // checker.cpp
    std::unique_ptr<CheckedGroup> begun(u32 linear);
    void step(CheckedGroup& group, Twins& twins);
    void agree(Twins& twins, const Instruction& in, const Effect& effect);
    void look(Twins& twins);
    void settle(Twins& twins);
    void moved(Twins& twins);
    u32 source(int lane, bool addresses);
    u32 record(Cause kind, u32 lane, u64 address, u64 start, const Event* other = nullptr, u32 other_lane = 0);

    // turns.cpp
    bool advance(CheckedGroup& group);
    void stand(CheckedGroup& group);
    bool hopeless(const std::vector<std::unique_ptr<CheckedGroup>>& waiting);
    bool notice(Twins& twins);

    // accesses.cpp
    u8* first(Wave& wave, int lane, u64 address, u32 bytes, bool write);
    u8* second(Wave& wave, int lane, u64 address, u32 bytes, bool write);
    void compare(Access& x, u64 address);
    u8* elsewhere(Access& x, u64 address);
    void begin_atomic(Access& x);
    u8* twin_atomic(Access& x);
    u8* resolve(Access& x);
    void outside(const Access& x, const Allocation* meant, u64 address);
    u64 equivalent(u64 address, const Allocation** meant);
    bool twin_bytes(const Access& x, u8* to);
    u32 memory_origin(const Access& x);

    // stores.cpp
    void finish();
    void finish_store(Access& x);
    void finish_atomic(Access& x);
    void finish_own(Access& x);
    void clash(const Access& x, u32 number);
    void put(const Access& x, const u8* b, u32 origin);

    // undo.cpp
    void save(u64 address, u32 bytes);

    // races.cpp
    u32 event(bool atomic, bool quiet);
    u32 raced(const Event& other);
    u32 joined(u32 before, u32 more);
    bool ordered(const Event& e) const;
    bool in_order(u32 number);
    bool coherent() const;
    // Bytes of an access that a race concerns; `other`: the cell of a wave that takes part.
    // `before`: of a read what the bytes were before the other's store, of a write what they are now, for the twin.
    u64 races_of_read(const Access& x, u8* before, u32* other);
    u64 races_of_write(const Access& x, u64 changed, const u8* before, u32* other);
    u64 race_on_read(Cells c, u32 count, u8* before, u32* other);
    u64 race_on_write(const Access& x, Cells c, u32 count, u64 changed, const u8* before, u32* other);
    bool settled(const Line& line, bool lds);
    void synchronise();
    void release();
    const Release& published();
};

}  // namespace machine
