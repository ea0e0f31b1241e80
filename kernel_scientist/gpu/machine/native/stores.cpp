// Stores and atomic operations of a checking run, carried out after both runs of the instruction.
#include "checker.h"

namespace machine {

using Space = Access::Space;

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
    (void)twin_atomic(x);
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
            if (x.where && x.first && !x.write) now_->polled = in_->number, now_->polled_address = x.address, now_->polled_at = now_->done;
            continue;
        }
        if (x.space == Space::memory) (void)resolve(x);  // the allocation that it lies in
        if (x.space == Space::scratch) finish_own(x);
        else if (x.atomic) {
            now_->polled = in_->number, now_->polled_address = x.address, now_->polled_at = now_->done;
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
