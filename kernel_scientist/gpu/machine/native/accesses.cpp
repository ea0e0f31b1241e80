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
    x.atomic = x.first = x.second = false, x.same = nullptr;
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
    if (x.space == Space::memory) save(address, bytes);
    std::memcpy(x.old, x.where, bytes);
    for (u32 n = 0; n + 1 < count_ && !x.same; ++n)
        if (accesses_[n].address == address) x.same = accesses_[n].same ? accesses_[n].same : &accesses_[n];
    return x.where;
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
    if (x) compare(*x, address);
    else {  // a lane that only the twin has switched on
        const Allocation* meant;
        x = &fresh(accesses_, count_, lane, equivalent(address, &meant), bytes, write);
        x->where = resolve(*x);
        x->atomic = write && Nature(effect_->nature) == Nature::atomic;
        if (x->atomic && x->where) {
            if (x->space == Space::memory) save(x->address, bytes);
            std::memcpy(x->old, x->where, bytes);
        }
    }
    x->second = true;
    if (!x->where) return nullptr;
    if (write && x->space == Space::scratch) return now_->scratch_b.data() + u64(lane) * launch_.order.scratch_bytes + (x->address & 0xffffffffull);
    if (write && !x->atomic) {
        twin_bytes(*x, x->b);
        return x->b;
    }
    if (x->same) return x->same->b;
    bool differs = twin_bytes(*x, x->b);
    if (x->atomic) {  // the first run has changed memory already
        if (x->space == Space::memory) std::memcpy(x->b, x->old, bytes), shadow_.apply(x->address, bytes, x->b);
        differs = std::memcmp(x->b, x->old, bytes) != 0;
    }
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

// Keep what a page holds before the launch first changes it.
void Checker::save(u64 address, u32 bytes) {
    for (u64 page = address / PAGE; page <= (address + bytes - 1) / PAGE; ++page) {
        const u64 key = page << 16 ^ u64(near_ - launch_.allocations);
        if (saved_.count(key)) continue;
        const u64 start = std::max(page * PAGE, near_->start), end = std::min((page + 1) * PAGE, near_->start + near_->bytes);
        Saved& kept = saved_[key];
        kept.start = start;
        kept.bytes.assign(reinterpret_cast<u8*>(start), reinterpret_cast<u8*>(end));
        if (const Values* values = shadow_.find(start)) {
            kept.delta.assign(values->delta + start % PAGE, values->delta + start % PAGE + (end - start));
            kept.origins.assign(values->origin + start % PAGE / 4, values->origin + (start % PAGE + (end - start) + 3) / 4);
        }
    }
}

void Checker::undo() {
    for (auto& [key, kept] : saved_) {
        if (const Values* values = shadow_.find(kept.start)) kept.after = *values;
        std::memcpy(reinterpret_cast<u8*>(kept.start), kept.bytes.data(), kept.bytes.size());
        shadow_.define(kept.start, kept.bytes.size());
        if (kept.delta.empty()) continue;
        Values& values = shadow_.make(kept.start);
        std::memcpy(values.delta + kept.start % PAGE, kept.delta.data(), kept.delta.size());
        std::memcpy(values.origin + kept.start % PAGE / 4, kept.origins.data(), kept.origins.size() * 4);
    }
    earlier_ = std::move(saved_);
    saved_.clear();
}

void Checker::join() {
    for (const auto& [key, kept] : earlier_)
        for (u64 n = 0; n < kept.bytes.size(); ++n) {
            const u64 at = (kept.start + n) % PAGE;
            if (!kept.after.delta[at] || kept.after.origin[at / 4] <= POINTER) continue;
            Values& values = shadow_.make(kept.start);
            // What one run reads too early is not written yet in another: the race is the reason.
            const auto races = [&](u32 origin) { return Cause(shadow_.records[origin].kind) == Cause::race_read || Cause(shadow_.records[origin].kind) == Cause::race_write; };
            const bool told = values.delta[at] && (races(values.origin[at / 4]) || !races(kept.after.origin[at / 4]));
            if (!told) values.delta[at] = kept.after.delta[at], values.origin[at / 4] = kept.after.origin[at / 4];
        }
}

// Set the twin's bytes, where the first run's are in place.
void Checker::put(const Access& x, const u8* b, u32 origin) {
    u8 delta[64];
    u8 any = 0;
    for (u32 n = 0; n < x.bytes; ++n) any |= delta[n] = x.where[n] ^ b[n];
    if (x.space == Space::memory) {
        if (any || !shadow_.empty()) shadow_.set(x.address, x.bytes, delta, origin);
        return;
    }
    const u64 offset = x.address & 0xffffffffull;
    std::memcpy(group_->lds.b.data() + offset, b, x.bytes);
    if (any)
        for (u64 word = offset / 4; word <= (offset + x.bytes - 1) / 4; ++word) group_->lds.origin[word] = origin;
}

// Bytes that differ; of whole words all bytes do if one does.
static u64 differing(const u8* a, const u8* b, u32 bytes) {
    u64 found = 0;
    if (bytes % 4 == 0) {
        for (u32 n = 0; n < bytes; n += 4) {
            u32 x, y;
            std::memcpy(&x, a + n, 4), std::memcpy(&y, b + n, 4);
            found |= u64(x != y ? 15 : 0) << n;
        }
        return found;
    }
    for (u32 n = 0; n < bytes; ++n) found |= u64(a[n] != b[n]) << n;
    return found;
}

void Checker::finish_store(Access& x) {
    u8 old_b[64];
    twin_bytes(x, old_b);
    if (x.space == Space::memory) save(x.address, x.bytes);
    std::memcpy(x.old, x.where, x.bytes);
    if (!x.first) std::memcpy(x.a, x.old, x.bytes);
    if (!x.second) std::memcpy(x.b, old_b, x.bytes);
    const u64 changed_a = differing(x.a, x.old, x.bytes), changed = changed_a | differing(x.b, old_b, x.bytes);
    std::memcpy(x.where, x.a, x.bytes);
    version_ += changed_a != 0;
    u32 other = 0, origin = 0;
    const u64 races = races_of_write(x, changed, old_b, &other);
    if (races) {
        for (u32 n = 0; n < x.bytes; ++n)
            if (races >> n & 1) x.b[n] = x.a[n] ^ u8(odd_word(odd_));
        origin = record(Cause::race_write, u32(x.lane), x.address, x.space == Space::memory ? near_->start : 0, &usage_->events[other >> 6], other & 63);
    } else if (std::memcmp(x.a, x.b, x.bytes)) origin = source(x.lane, false);
    put(x, x.b, origin);
}

void Checker::finish_atomic(Access& x) {
    if (x.same) return;
    if (!x.second) {
        std::memcpy(x.b, x.old, x.bytes);
        if (x.space == Space::memory) shadow_.apply(x.address, x.bytes, x.b);
        else twin_bytes(x, x.b);
    }
    const u64 changed = differing(x.where, x.old, x.bytes) ? ALL : 0;
    version_ += changed != 0;
    u32 other = 0, origin = 0;
    const u64 races = changed ? races_of_write(x, changed, x.old, &other) : 0;
    if (races) {
        for (u32 n = 0; n < x.bytes; ++n)
            if (races >> n & 1) x.b[n] = x.where[n] ^ u8(odd_word(odd_));
        origin = record(Cause::race_write, u32(x.lane), x.address, x.space == Space::memory ? near_->start : 0, &usage_->events[other >> 6], other & 63);
    } else if (std::memcmp(x.where, x.b, x.bytes)) origin = loaded_[x.lane] > POINTER ? loaded_[x.lane] : source(x.lane, false);
    put(x, x.b, origin);
}

void Checker::finish_own(Access& x) {
    const u64 offset = x.address & 0xffffffffull, size = launch_.order.scratch_bytes;
    if (!std::memcmp(x.where, now_->scratch_b.data() + x.lane * size + offset, x.bytes)) return;
    const u32 origin = source(x.lane, false);
    for (u64 word = offset / 4; word <= (offset + x.bytes - 1) / 4; ++word) now_->scratch_origins[x.lane * (size / 4) + word] = origin;
}

// Lanes of one instruction that stored different values to one place: nobody says which stays.
void Checker::clash(const Access& x, u32 number) {
    const u64 lost = differing(x.where, x.a, x.bytes);
    if (!lost) return;
    for (u32 n = number + 1; n < count_; ++n) {
        const Access& y = accesses_[n];
        if (!y.write || !y.first || !y.where || y.lane == x.lane || y.where + y.bytes <= x.where || x.where + x.bytes <= y.where) continue;
        u8 b[64];
        std::memcpy(b, x.where, x.bytes);
        for (u32 k = 0; k < x.bytes; ++k)
            if (lost >> k & 1) b[k] ^= u8(odd_word(odd_));
        const Event me{group_->group.number, now_->a.id, group_->epoch, 0, in_->number, false, false};
        put(x, b, record(Cause::race_write, u32(x.lane), x.address, x.space == Space::memory ? near_->start : 0, &me, u32(y.lane)));
        return;
    }
}

// Carry out what the instruction stores, in the order of the lanes.
void Checker::finish() {
    bool stored = false;
    for (u32 n = 0; n < count_; ++n) {
        Access& x = accesses_[n];
        if (!x.second && !x.where) outside(x, nullptr, x.address);
        if (!x.where || !x.write) {
            if (x.where && x.first && !x.write) now_->polled = in_->number, now_->polled_address = x.address;
            continue;
        }
        if (x.space == Space::memory) (void)resolve(x);  // the allocation that it lies in
        if (x.space == Space::scratch) finish_own(x);
        else if (x.atomic) {
            now_->polled = in_->number, now_->polled_address = x.address;
            finish_atomic(x);
        }
        else finish_store(x), stored = true;
    }
    if (stored && count_ > 1)
        for (u32 n = 0; n < count_; ++n) {
            const Access& x = accesses_[n];
            if (x.write && x.first && x.where && !x.atomic && x.space != Space::scratch) clash(x, n);
        }
    synchronise();
}

}  // namespace machine
