// Whether anything of a launch goes on: waves that turn in circles, and launches in which all of them do.
#pragma once

#include "memory.h"

namespace machine {

// Whether a wave that jumped back is in the state again that it was in before. To look costs little: most loops change
// a scalar register, and a state is kept ever more rarely.
bool closes(Circle& circle, const Wave& wave, const Instruction& in);

// A number for all that a launch may have written, and for the state of a workgroup after `hash`.
u64 written(const Launch& launch);
u64 state(const Group& group, u64 hash);

constexpr u64 FIRST = 16, APART = 12;
constexpr int TURNS = 4;

// Passes over all workgroups of a thread in which none ended and each wave only waited. The state after some of them
// is compared with that `APART` passes later: loops that sleep need several passes for a round.
struct Quiet {
    u64 passes = 0, hash = 0;
    bool same = false;
    // Whether the state is wanted now.
    bool pass(bool goes_on) {
        passes = goes_on ? 0 : passes + 1;
        return passes >= FIRST && (std::has_single_bit(passes) || passes - std::bit_floor(passes) == APART);
    }
    // Whether it was compared; `same` says how.
    bool compared(u64 now) {
        const bool first = std::has_single_bit(passes);
        if (first) hash = now;
        else same = now == hash;
        return !first;
    }
};

// What the threads of a launch found. Nothing goes on once each found so twice since anything did: what one sees may
// be changed by what another one still runs.
class Stillness {
   public:
    explicit Stillness(u32 threads) : times_(threads) {}
    // Note what a thread found. Returns whether the launch is stuck.
    bool told(u32 thread, bool same);
    // A thread has no workgroup left, or stops. Returns whether the launch is stuck.
    bool ended(u32 thread);

   private:
    std::mutex guard_;
    std::vector<u32> times_;
    std::atomic<bool> any_{false};
    bool stuck_ = false;
};

// Takes note of what the waves of a workgroup read while they turn in circles.
class Recorder : public Watch {
   public:
    explicit Recorder(Group& group);
    ~Recorder() override;
    u8* place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write) override;
    void beyond(Wave&, u64, u64, u64, const u64*) override {}
    // Report what each of them waits for.
    void tell() const;

   private:
    struct Read {
        const Instruction* in = nullptr;
        int lane = 0;
        u64 address = 0;
    };
    Group& group_;
    std::vector<Read> reads_;
};

}  // namespace machine
