// What a checking run knows of memory, kept from launch to launch; and the functions that Python calls for it.
#include "shadow.h"

#include <algorithm>

namespace machine {

// Call `act(page's offset, bytes before, count)` for the parts of a range that lie in one page each.
template <class F> static void parts(u64 address, u64 bytes, F act) {
    for (u64 done = 0; done < bytes;) {
        const u64 at = address + done, count = std::min<u64>(bytes - done, PAGE - at % PAGE);
        act(at, done, count);
        done += count;
    }
}

Values& Shadow::make(u64 address) {
    if (Values* there = find(address)) return *there;
    Values* made = (values_[address / PAGE] = std::make_unique<Values>()).get();
    recent_[address / PAGE % RECENT] = {address / PAGE, made};
    return *made;
}

bool Shadow::apply(u64 address, u32 bytes, u8* to) {
    u8 any = 0;
    parts(address, bytes, [&](u64 at, u64 done, u64 count) {
        const Values* page = find(at);
        if (!page) return;
        const u8* delta = page->delta + at % PAGE;
        for (u64 n = 0; n < count; ++n) any |= delta[n], to[done + n] ^= delta[n];
    });
    return any != 0;
}

void Shadow::set(u64 address, u32 bytes, const u8* delta, u32 origin) {
    parts(address, bytes, [&](u64 at, u64 done, u64 count) {
        bool any = false;
        for (u64 n = 0; n < count; ++n) any |= delta[done + n] != 0;
        Values* page = any ? &make(at) : find(at);
        if (!page) return;
        std::memcpy(page->delta + at % PAGE, delta + done, count);
        if (any)
            for (u64 word = at % PAGE / 4; word <= (at % PAGE + count - 1) / 4; ++word) page->origin[word] = origin;
    });
}

u32 Shadow::origin(u64 address, u32 bytes) {
    u32 found = 0;
    parts(address, bytes, [&](u64 at, u64, u64 count) {
        const Values* page = find(at);
        if (!page) return;
        for (u64 n = 0; n < count; ++n)
            if (page->delta[at % PAGE + n] && found <= POINTER) found = std::max(found, page->origin[(at % PAGE + n) / 4]);
    });
    return found;
}

void Shadow::poison(u64 address, u64 bytes, u64 seed) {
    u64 state = seed ^ address;
    parts(address, bytes, [&](u64 at, u64, u64 count) {
        Values& page = make(at);
        for (u64 n = 0; n < count; n += 4) {
            const u32 word = odd_word(state);
            std::memcpy(page.delta + at % PAGE + n, &word, std::min<u64>(4, count - n));
        }
        for (u64 word = at % PAGE / 4; word <= (at % PAGE + count - 1) / 4; ++word) page.origin[word] = 0;
    });
}

void Shadow::define(u64 address, u64 bytes) {
    if (values_.empty()) return;
    parts(address, bytes, [&](u64 at, u64, u64 count) {
        if (Values* page = find(at)) std::memset(page->delta + at % PAGE, 0, count);
    });
}

void Shadow::settle(u64 address, u64 bytes, u8 pattern) {
    parts(address, bytes, [&](u64 at, u64, u64 count) {
        Values* page = find(at);
        if (!page) return;
        u8* memory = reinterpret_cast<u8*>(at);
        for (u64 n = 0, k = at % PAGE; n < count; ++n, ++k)
            if (page->delta[k] && page->origin[k / 4] == 0) memory[n] = pattern;
        std::memset(page->delta + at % PAGE, 0, count);
    });
}

void Shadow::flip() {
    for (auto& [page, values] : values_)
        for (u32 n = 0; n < PAGE; ++n)
            if (values->delta[n] && values->origin[n / 4] == 0) values->delta[n] ^= 0x80;
}

bool Shadow::unused() const {
    for (size_t n = 2; n < records.size(); ++n)
        if (!records[n].reach) return true;
    return false;
}

u32 Shadow::record(Cause kind, u32 launch, u32 instruction, u32 group, u32 wave, u32 lane, u64 address, u64 start, const Event* other, u32 other_lane) {
    const u64 key = u64(kind) << 56 ^ u64(launch) << 40 ^ u64(instruction) << 16 ^ (start * 0x9e3779b97f4a7c15ull >> 8);
    const auto [place, fresh] = numbers_.try_emplace(key, u32(records.size()));
    if (fresh) {
        Record made{};
        made.kind = u32(kind), made.launch = launch, made.instruction = instruction, made.lane = lane, made.wave = wave;
        made.group = group, made.address = address, made.start = start, made.last_group = NOBODY;
        made.other_instruction = made.other_group = made.other_wave = made.other_lane = NOBODY;
        if (other)
            made.other_instruction = other->instruction, made.other_wave = other->wave, made.other_group = other->group, made.other_lane = other_lane;
        records.push_back(made);
    }
    Record& found = records[place->second];
    if (place->second < counted) return place->second;
    ++found.lanes;
    if (found.last_group != group) ++found.groups, found.last_group = group;
    return place->second;
}

}  // namespace machine

using namespace machine;

extern "C" {

void* machine_shadow() { return new Shadow; }
void machine_shadow_free(void* shadow) { delete static_cast<Shadow*>(shadow); }
// Memory that nobody wrote from now on, and memory that is defined from now on.
void machine_shadow_poison(void* shadow, u64 address, u64 bytes, u64 seed) { static_cast<Shadow*>(shadow)->poison(address, bytes, seed); }
void machine_shadow_define(void* shadow, u64 address, u64 bytes) { static_cast<Shadow*>(shadow)->define(address, bytes); }
void machine_shadow_settle(void* shadow, u64 address, u64 bytes, u32 pattern) {
    static_cast<Shadow*>(shadow)->settle(address, bytes, u8(pattern));
}
// The twin's bytes differ by `delta`; `origin`: 0 or the record that says why.
void machine_shadow_set(void* shadow, u64 address, u64 bytes, const u8* delta, u32 origin) {
    static_cast<Shadow*>(shadow)->set(address, u32(bytes), delta, origin);
}
// Fill in how bytes differ, and if `origins` is not null for each byte that does the record that says why.
int machine_shadow_get(void* shadow, u64 address, u64 bytes, u8* delta, u32* origins) {
    Shadow& from = *static_cast<Shadow*>(shadow);
    int any = 0;
    for (u64 done = 0; done < bytes;) {
        const u64 at = address + done, count = std::min<u64>(bytes - done, PAGE - at % PAGE);
        if (const Values* page = from.find(at)) {
            std::memcpy(delta + done, page->delta + at % PAGE, count);
            for (u64 n = 0; n < count; ++n) {
                any |= delta[done + n];
                if (origins) origins[done + n] = delta[done + n] ? page->origin[(at % PAGE + n) / 4] : 0;
            }
        } else {
            std::memset(delta + done, 0, count);
            if (origins) std::memset(origins + done, 0, 4 * count);
        }
        done += count;
    }
    return any != 0;
}
void machine_shadow_reach(void* shadow, u32 origin, u32 how) { static_cast<Shadow*>(shadow)->reach(origin, Reach(how), NOBODY); }
size_t machine_shadow_records(void* shadow, void* to, size_t most) {
    const std::vector<Record>& records = static_cast<Shadow*>(shadow)->records;
    if (to) std::memcpy(to, records.data(), std::min(most, records.size()) * sizeof(Record));
    return records.size();
}
int machine_record_bytes() { return sizeof(Record); }
}
