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

// What nobody wrote, in words of one page from an offset on.
static void fill(Values& page, u64 number, u64 from, u64 count, u64 seed) {
    for (u64 n = from; n < from + count;) {
        u64 state = seed + (number * PAGE + n) / 4 * GOLDEN;
        const u32 word = odd_word(state);
        const u64 skipped = n % 4, bytes = std::min<u64>(4 - skipped, from + count - n);
        std::memcpy(page.delta + n, reinterpret_cast<const u8*>(&word) + skipped, bytes);
        page.origin[n / 4] = 0;
        n += bytes;
    }
}

static void turn(Values& page) {
    for (u32 n = 0; n < PAGE; ++n)
        if (page.delta[n] && page.origin[n / 4] == 0) page.delta[n] ^= 0x80;
}

Values* Shadow::unwritten(u64 page) {
    auto found = unwritten_.upper_bound(page);
    if (found == unwritten_.begin() || page >= (--found)->second.end) return nullptr;
    const Unwritten range = found->second;
    leave(page, page + 1, [](u64, u64) {});
    Values* made = (values_[page] = std::make_unique<Values>()).get();
    fill(*made, page, 0, PAGE, range.seed);
    if (range.flipped) turn(*made);
    return made;
}

template <class F> void Shadow::leave(u64 first, u64 end, F act) {
    auto found = unwritten_.upper_bound(first);
    if (found != unwritten_.begin()) --found;
    while (found != unwritten_.end() && found->first < end) {
        const auto [start, range] = *found;
        if (range.end <= first) {
            ++found;
            continue;
        }
        found = unwritten_.erase(found);
        if (start < first) unwritten_[start] = {first, range.seed, range.flipped};
        if (range.end > end) unwritten_[end] = range;
        act(std::max(start, first), std::min(range.end, end));
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

// Call `at_edge(page's offset, count)` for the parts of a range that fill no page, and `whole(first, end)` for the pages.
template <class F, class G> static void divided(u64 address, u64 bytes, F at_edge, G whole) {
    const u64 end = address + bytes, first = (address + PAGE - 1) / PAGE, last = std::max(first, end / PAGE);
    const auto edge = [&](u64 from, u64 to) {
        if (from < to) parts(from, to - from, [&](u64 at, u64, u64 count) { at_edge(at, count); });
    };
    edge(address, std::min(end, first * PAGE));
    if (first < last) whole(first, last);
    edge(std::max(address, last * PAGE), end);
}

void Shadow::poison(u64 address, u64 bytes, u64 seed) {
    divided(
        address, bytes, [&](u64 at, u64 count) { fill(make(at), at / PAGE, at % PAGE, count, seed); },
        [&](u64 first, u64 end) {
            forget(first, end);
            unwritten_[first] = {end, seed, false};
        });
}

void Shadow::define(u64 address, u64 bytes) {
    if (empty()) return;
    divided(
        address, bytes,
        [&](u64 at, u64 count) {
            if (Values* page = find(at)) std::memset(page->delta + at % PAGE, 0, count);
        },
        [&](u64 first, u64 end) { forget(first, end); });
}

void Shadow::forget(u64 first, u64 end) {
    leave(first, end, [](u64, u64) {});
    if (end - first < values_.size())
        for (u64 page = first; page < end; ++page) values_.erase(page);
    else
        std::erase_if(values_, [&](const auto& one) { return one.first >= first && one.first < end; });
    for (Recent& recent : recent_) recent = {};
}

void Shadow::settle(u64 address, u64 bytes, u8 pattern) {
    const auto part = [&](u64 at, u64 count) {
        Values* page = find(at);
        if (!page) return;
        u8* memory = reinterpret_cast<u8*>(at);
        for (u64 n = 0, k = at % PAGE; n < count; ++n, ++k)
            if (page->delta[k] && page->origin[k / 4] == 0) memory[n] = pattern;
        std::memset(page->delta + at % PAGE, 0, count);
    };
    divided(address, bytes, part, [&](u64 first, u64 end) {
        u64 filled = 0;
        leave(first, end, [&](u64 from, u64 to) {
            const u64 count = std::min((to - from) * PAGE, MOST_FILLED - std::min(MOST_FILLED, filled));
            std::memset(reinterpret_cast<u8*>(from * PAGE), pattern, count);
            filled += count;
        });
        for (Recent& recent : recent_) recent = {};
        if (end - first < values_.size())
            for (u64 page = first; page < end; ++page) part(page * PAGE, PAGE);
        else
            for (auto& [page, values] : values_)
                if (page >= first && page < end) part(page * PAGE, PAGE);
    });
}

void Shadow::flip() {
    for (auto& [page, values] : values_) turn(*values);
    for (auto& [first, range] : unwritten_) range.flipped = !range.flipped;
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
