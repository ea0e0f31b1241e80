// Which accesses of a launch are ordered: by a wave's own order, by barriers, by release and acquire.
//
// A release is `buffer_wbl2 sc1`: what the wave did, and what barriers ordered before it, can be seen by whoever reads
// a place that the wave changes atomically later. A wave acquires by an atomic operation that returns a value, by a
// volatile load, or by an atomic load with `buffer_inv sc1` behind it. Sources: LLVM, "Memory Model GFX942".
#pragma once

#include "shadow.h"

namespace machine {

// What is known to have happened before: by workgroup and wave, all accesses up to a sequence number; by workgroup, all
// those in front of a barrier.
class Known {
   public:
    bool covers(const Event& e) const {
        const auto barrier = epochs_.find(e.group);
        if (barrier == epochs_.end()) return false;
        if (barrier->second > e.epoch) return true;
        const auto wave = sequences_.find(u64(e.group) << 32 | e.wave);
        return wave != sequences_.end() && wave->second >= e.sequence;
    }
    void add(u32 group, u32 wave, u32 epoch, u32 sequence) {
        u32 &e = epochs_[group], &s = sequences_[u64(group) << 32 | wave];
        e = std::max(e, epoch), s = std::max(s, sequence);
    }
    void add(const Known& other) {
        for (const auto& [group, epoch] : other.epochs_) { u32& e = epochs_[group]; e = std::max(e, epoch); }
        for (const auto& [wave, sequence] : other.sequences_) { u32& s = sequences_[wave]; s = std::max(s, sequence); }
    }
    bool empty() const { return epochs_.empty(); }

   private:
    std::unordered_map<u32, u32> epochs_;
    std::unordered_map<u64, u32> sequences_;
};
using Release = std::shared_ptr<const Known>;

// A wave's place in the order. Workgroups have one as well: what their barriers pass on to all waves.
struct Clock {
    u32 sequence = 1, version = 1;
    Known acquired;
    Release released, published;
    u32 published_version = 0;
    std::vector<Release> seen;  // at places that were read atomically and not acquired yet
    std::unordered_set<const Known*> merged;

    void see(const std::vector<Release>& at) {
        for (const Release& one : at)
            if (!merged.count(one.get())) seen.push_back(one);
    }
    void acquire() {
        for (const Release& one : seen)
            if (merged.insert(one.get()).second) acquired.add(*one), kept.push_back(one);
        seen.clear();
    }

   private:
    std::vector<Release> kept;  // so that no address is used twice
};

// The uses of memory during one launch.
class Usage {
   public:
    std::vector<Event> events{1};
    std::vector<std::vector<u32>> several{1};  // numbers of events
    std::unordered_map<u64, u32> joined;       // of an event and one more: the event for all of them
    u64 suspects = 0;  // stores to what another wave has read: the other order would tell whether it matters

    Uses& page(u64 address) {
        const u64 number = address / PAGE;
        Recent& recent = recent_[number % RECENT];
        if (number != recent.number) {
            auto& found = pages_[number];
            if (!found) found = std::make_unique<Uses>();
            recent = {number, found.get()};
        }
        return *recent.uses;
    }
    std::vector<Release>& at(u64 address) { return places_[address]; }

   private:
    std::unordered_map<u64, std::unique_ptr<Uses>> pages_;
    std::unordered_map<u64, std::vector<Release>> places_;
    static constexpr u64 RECENT = 256;
    struct Recent {
        u64 number = ~0ull;
        Uses* uses = nullptr;
    } recent_[RECENT];  // pages that were looked for lately
};

// The uses of consecutive bytes of one line.
struct Cells {
    u32* writer;
    u8* before;
    Line* line;
};

}  // namespace machine
