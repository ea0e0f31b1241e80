// Accesses to memory in a checking run: the twin has its own view of every byte, and both must go to the same place.
#include <bit>
#include <stdexcept>

#include "checker.h"

namespace machine {

using Space = Access::Space;

u8* Checker::place(Wave& wave, const Instruction&, int lane, u64 address, u32 bytes, bool write) {
    return &wave == &now_->a ? first(wave, lane, address, bytes, write) : second(wave, lane, address, bytes, write);
}

// Find the place of an access of the first run; null if it lies outside.
u8* Checker::resolve(Access& x) {
    const u64 aperture = x.address & ~0xffffffffull, offset = x.address & 0xffffffffull;
    x.space = aperture == SHARED_APERTURE ? Space::lds : aperture == PRIVATE_APERTURE ? Space::scratch : Space::memory;
    x.writable = true;
    if (x.space == Space::lds) return offset + x.bytes <= group_->lds.a.size() ? group_->lds.a.data() + offset : nullptr;
    if (x.space == Space::scratch) {
        const u64 size = launch_.order.scratch_bytes;
        return offset + x.bytes <= size ? now_->scratch_a.data() + x.lane * size + offset : nullptr;
    }
    const Allocation* found = near_;
    if (!found || x.address - found->start >= found->bytes) found = launch_.containing(x.address);
    if (!found || x.address - found->start + x.bytes > found->bytes) return nullptr;
    near_ = found;
    x.writable = found->writable;
    return x.write && !found->writable ? nullptr : reinterpret_cast<u8*>(x.address);
}

static Access& fresh(std::vector<Access>& all, u32& count, int lane, u64 address, u32 bytes, bool write) {
    if (count == all.size()) throw std::length_error("accesses");
    Access& x = all[count++];
    x.address = address, x.lane = lane, x.bytes = bytes, x.write = write;
    x.atomic = x.first = x.second = x.ready = false, x.same = nullptr;
    return x;
}

u8* Checker::first(Wave&, int lane, u64 address, u32 bytes, bool write) {
    Access& x = fresh(accesses_, count_, lane, address, bytes, write);
    x.first = true, x.atomic = write && Nature(effect_->nature) == Nature::atomic;
    x.where = resolve(x);
    if (!x.where || !write) return x.where;
    if (!x.atomic) {
        if (x.space == Space::scratch) return x.where;
        std::memcpy(x.a, x.where, bytes);
        return x.a;
    }
    begin_atomic(x);
    return x.where;
}

// Keep what an atomic operation changes. Lanes at one address have one place in the twin, as they have in the first run.
void Checker::begin_atomic(Access& x) {
    if (x.space == Space::memory) save(x.address, x.bytes);
    std::memcpy(x.old, x.where, x.bytes);
    for (u32 n = 0; n + 1 < count_ && !x.same; ++n)
        if (accesses_[n].address == x.address && accesses_[n].where) x.same = accesses_[n].same ? accesses_[n].same : &accesses_[n];
}

// The twin's bytes at the place of an atomic operation. The first run has changed memory already.
u8* Checker::twin_atomic(Access& x) {
    if (x.same) return twin_atomic(*x.same);
    if (!x.ready) {
        if (x.space == Space::memory) std::memcpy(x.b, x.old, x.bytes), shadow_.apply(x.address, x.bytes, x.b);
        else twin_bytes(x, x.b);
    }
    x.ready = true;
    return x.b;
}

// The address of the first run that a twin's address stands for, and the allocation that it was derived from.
u64 Checker::equivalent(u64 address, const Allocation** meant) {
    *meant = nullptr;
    if (address < REGION || address >= REGIONS_END) return address;
    if (address / REGION != region_) {
        const auto found = regions_.find(address / REGION);
        if (found == regions_.end()) return address;
        region_ = address / REGION, in_region_ = found->second;
    }
    *meant = launch_.allocations + in_region_;
    return address - moved_[in_region_] + (*meant)->start;
}

void Checker::outside(const Access& x, const Allocation* meant, u64 address) {
    if (x.space == Space::lds) record(Cause::lds_outside, u32(x.lane), x.address & 0xffffffffull, 0);
    else if (x.space == Space::scratch) record(Cause::scratch_outside, u32(x.lane), x.address & 0xffffffffull, 0);
    else {
        const bool inside = x.write && !x.writable;
        const Cause kind = inside ? Cause::write_read_only : x.write ? Cause::write_outside : Cause::read_outside;
        record(kind, u32(x.lane), address, meant ? meant->start : 0);
    }
}

// Compare where the twin goes; tell what is outside.
void Checker::compare(Access& x, u64 address) {
    if (address == x.address && x.where && x.space != Space::memory) return;
    const Allocation* meant;
    const u64 same = equivalent(address, &meant);
    if (same != x.address) {
        const u32 origin = source(x.lane, true);
        if (origin > POINTER) return shadow_.reach(origin, Reach::address, in_->number);
        if (!x.where) outside(x, nullptr, x.address);
        return;
    }
    const bool left = meant && (same - meant->start >= meant->bytes || same - meant->start + x.bytes > meant->bytes);
    if (!x.where || left) outside(x, meant, same);
}

// A load of the twin from another place for an undefined address, where that place is inside as well: what it gets differs
// for the same reason. It is a fault only if something depends on that. Null: the load is none such.
u8* Checker::elsewhere(Access& x, u64 address) {
    if (x.write || !x.where || address == x.address) return nullptr;
    const Allocation* meant;
    const u64 same = equivalent(address, &meant);
    if (same == x.address) return nullptr;
    const u32 origin = source(x.lane, true);
    if (origin <= POINTER) return nullptr;
    Access other = x;
    other.address = same, other.where = resolve(other);
    if (!other.where || (meant && other.address - meant->start + x.bytes > meant->bytes)) return nullptr;
    twin_bytes(other, x.b);
    x.second = true, loaded_[x.lane] = loaded_any_ = origin;
    return x.b;
}

u32 Checker::memory_origin(const Access& x) {
    if (x.space == Space::memory) return shadow_.origin(x.address, x.bytes);
    const u64 offset = x.address & 0xffffffffull, words = launch_.order.scratch_bytes / 4;
    const u32* origins = x.space == Space::lds ? group_->lds.origin.data() : now_->scratch_origins.data() + x.lane * words;
    u32 found = 0;
    for (u64 word = offset / 4; word <= (offset + x.bytes - 1) / 4; ++word) found = std::max(found, origins[word]);
    return found;
}

// Fill in the twin's bytes. Returns whether they differ from the first run's.
bool Checker::twin_bytes(const Access& x, u8* to) {
    const u64 offset = x.address & 0xffffffffull;
    if (x.space == Space::memory) {
        std::memcpy(to, x.where, x.bytes);
        return shadow_.apply(x.address, x.bytes, to);
    }
    const u8* from = x.space == Space::lds ? group_->lds.b.data() + offset : now_->scratch_b.data() + u64(x.lane) * launch_.order.scratch_bytes + offset;
    std::memcpy(to, from, x.bytes);
    return std::memcmp(to, x.where, x.bytes) != 0;
}

u8* Checker::second(Wave&, int lane, u64 address, u32 bytes, bool write) {
    Access* x = nullptr;
    for (u32 n = cursor_; n < count_ && !x; ++n)
        if (accesses_[n].lane == lane && accesses_[n].first && !accesses_[n].second) x = &accesses_[n], cursor_ = n + 1 == count_ ? n : n + 1;
    for (u32 n = 0; n < cursor_ && n < count_ && !x; ++n)
        if (accesses_[n].lane == lane && accesses_[n].first && !accesses_[n].second) x = &accesses_[n];
    if (x) {
        if (u8* found = elsewhere(*x, address)) return found;
        compare(*x, address);
    } else {  // a lane that only the twin has switched on
        const Allocation* meant;
        x = &fresh(accesses_, count_, lane, equivalent(address, &meant), bytes, write);
        x->where = resolve(*x);
        x->atomic = write && Nature(effect_->nature) == Nature::atomic;
        if (x->atomic && x->where) begin_atomic(*x);
    }
    x->second = true;
    if (!x->where) return nullptr;
    if (write && x->space == Space::scratch) return now_->scratch_b.data() + u64(lane) * launch_.order.scratch_bytes + (x->address & 0xffffffffull);
    if (write && !x->atomic) {
        twin_bytes(*x, x->b);
        return x->b;
    }
    if (x->same) return twin_atomic(*x);
    const bool differs = x->atomic ? std::memcmp(twin_atomic(*x), x->old, bytes) != 0 : twin_bytes(*x, x->b);
    if (differs) {
        u32 origin = memory_origin(*x);
        if (origin == 0) {
            const Cause kind = x->space == Space::lds ? Cause::unset_lds : x->space == Space::scratch ? Cause::unset_scratch : Cause::unset_memory;
            origin = record(kind, u32(lane), x->address, near_ && x->space == Space::memory ? near_->start : 0);
        }
        loaded_[lane] = loaded_any_ = origin;
    }
    u32 other = 0;
    u8 before[64];
    if (const u64 races = x->first ? races_of_read(*x, before, &other) : 0) {
        // The other order: what was there before; anything else if that is the same.
        bool same = true;
        for (u32 n = 0; n < bytes; ++n) same &= !(races >> n & 1) || before[n] == x->where[n];
        for (u32 n = 0; n < bytes; ++n)
            if (races >> n & 1) x->b[n] = same ? x->b[n] ^ u8(odd_word(odd_)) : before[n];
        const u32 origin = record(Cause::race_read, u32(lane), x->address, near_ && x->space == Space::memory ? near_->start : 0, &usage_->events[other >> 6], other & 63);
        if (loaded_[lane] <= POINTER) loaded_[lane] = loaded_any_ = origin;
    }
    return x->b;
}

// A compiler that knows no size gives a buffer the largest range, and switches lanes off by the offset 2^31. Any other
// offset beyond that range is negative: the access is outside, and the device drops it.
void Checker::beyond(Wave& wave, u64 lanes, u64 base, u64 range, const u64* addresses) {
    constexpr u64 largest = 0x7ffffff0, off = 0x80000000, near = 1 << 16;
    if (&wave != &now_->a || range < largest) return;
    for (; lanes; lanes &= lanes - 1) {
        const int l = std::countr_zero(lanes);
        const u32 offset = u32(addresses[l] - base);
        if (offset - (off - near) < 2 * near) continue;
        const Allocation* meant = launch_.containing(base);
        const bool write = Nature(effect_->nature) != Nature::load;
        record(write ? Cause::write_outside : Cause::read_outside, u32(l), base + i64(i32(offset)), meant ? meant->start : 0);
    }
}

}  // namespace machine
