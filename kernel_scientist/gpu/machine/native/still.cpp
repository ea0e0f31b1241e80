// Whether anything of a launch goes on, and what its waves wait for if not.
#include "still.h"

#include <algorithm>

namespace machine {

constexpr u32 ENOUGH = 2;  // how often each thread must find that nothing goes on

static bool same(const std::vector<u32>& kept, const u32* now, size_t words) {
    return kept.size() == words && !std::memcmp(kept.data(), now, words * 4);
}

bool closes(Circle& c, const Wave& wave, const Instruction& in) {
    const size_t words = size_t(wave.group->launch.order.registers) * LANES;
    if (c.pc == wave.pc && same(c.scalars, wave.s, SCALARS)) {
        c.end = in.number;
        if (same(c.vectors, wave.v, words)) return c.closed = true;
        if (std::has_single_bit(++c.equal)) c.vectors.assign(wave.v, wave.v + words);
        return false;
    }
    if (!std::has_single_bit(++c.visits)) return false;
    c.pc = wave.pc, c.equal = 0;
    c.scalars.assign(wave.s, wave.s + SCALARS), c.vectors.clear();
    return false;
}

static u64 hashed(const void* from, size_t bytes, u64 hash) {
    const u8* at = static_cast<const u8*>(from);
    u64 lane[4] = {hash, hash ^ 1, hash ^ 2, hash ^ 3};
    for (; bytes >= 32; at += 32, bytes -= 32)
        for (int n = 0; n < 4; ++n) {
            u64 word;
            std::memcpy(&word, at + 8 * n, 8);
            lane[n] = std::rotl((lane[n] ^ word) * 0x9e3779b97f4a7c15ull, 29);
        }
    for (; bytes; ++at, --bytes) lane[0] = std::rotl((lane[0] ^ *at) * 0x9e3779b97f4a7c15ull, 29);
    for (int n = 1; n < 4; ++n) lane[0] = std::rotl((lane[0] ^ lane[n]) * 0xbf58476d1ce4e5b9ull, 31);
    return lane[0];
}

u64 written(const Launch& launch) {
    u64 hash = launch.begun;
    for (size_t n = 0; n < launch.count; ++n)
        if (const Allocation& a = launch.allocations[n]; a.writable) hash = hashed(reinterpret_cast<const void*>(a.start), a.bytes, hash);
    return hash;
}

u64 state(const Group& group, u64 hash) {
    const Order& order = group.launch.order;
    hash = hashed(group.lds.data(), group.lds.size(), hash + group.number);
    for (const Wave& w : group.waves) {
        hash = hashed(w.s, sizeof w.s, hash + (u64(w.pc) << 8) + u64(w.state));
        if (w.state == State::ended) continue;
        hash = hashed(w.v, size_t(order.registers) * LANES * 4, hash);
        hash = hashed(w.scratch, size_t(order.scratch_bytes) * LANES, hash);
    }
    return hash;
}

bool Stillness::told(u32 thread, bool same) {
    if (!same && !any_) return false;  // the usual case
    std::lock_guard lock(guard_);
    if (!same) {
        for (u32& times : times_)
            if (times != ~0u) times = 0;
        any_ = false;
        return false;
    }
    any_ = true, ++times_[thread];
    return stuck_ = stuck_ || std::ranges::all_of(times_, [](u32 times) { return times >= ENOUGH; });
}

bool Stillness::ended(u32 thread) {
    std::lock_guard lock(guard_);
    times_[thread] = ~0u;
    return stuck_;
}

Recorder::Recorder(Group& group) : group_(group), reads_(group.waves.size()) {
    for (Wave& wave : group.waves) wave.watch = this, wave.near = nullptr;
}

Recorder::~Recorder() {
    for (Wave& wave : group_.waves) wave.watch = nullptr;
}

u8* Recorder::place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write) {
    Read& known = reads_[wave.id];
    const u64 aperture = address & ~0xffffffffull;
    const bool shared = aperture != SHARED_APERTURE && aperture != PRIVATE_APERTURE;
    if (shared && (!write || !known.in)) known = {&in, lane, address};  // to store is no reason to wait, an atomic operation may be
    wave.watch = nullptr;
    u8* found = anywhere(wave, in, lane, address, bytes, write);
    wave.watch = this, wave.near = nullptr;  // or accesses of the same allocation do not come here
    return found;
}

void Recorder::tell() const {
    const auto& list = group_.launch.program.instructions;
    const bool known = std::ranges::any_of(reads_, [](const Read& one) { return one.in != nullptr; });
    for (const Wave& wave : group_.waves) {
        if (wave.state == State::ended) continue;
        const Read& read = reads_[wave.id];
        if (read.in) group_.launch.report(wave, *read.in, Fault::deadlock, u32(read.lane), read.address);
        else if (!known && wave.pc < list.size())  // waits for nothing that others could change
            group_.launch.report(wave, list[group_.circles[wave.id].pc == wave.pc ? group_.circles[wave.id].end : wave.pc], Fault::deadlock, 0, 0);
    }
}

}  // namespace machine
