// Races: accesses to one byte by different waves that nothing orders, at least one of which changes it.
#include "checker.h"

namespace machine {

// Whether the instruction's accesses are atomic or volatile, and so may meet others of the kind. In LDS only operations
// can be told from plain accesses.
bool Checker::coherent() const { return Nature(effect_->nature) == Nature::atomic || (in_->flags & SC1); }

// The number of the event that the current instruction is, until the next barrier or release.
u32 Checker::event(bool atomic, bool quiet) {
    auto& [version, number] = now_->events[2 * in_->number + quiet];
    if (version != now_->clock.version) {
        version = now_->clock.version, number = u32(usage_->events.size());
        if (number >= 1u << 26) return number = 0;  // too many to tell apart
        usage_->events.push_back({group_->group.number, now_->a.id, group_->epoch, now_->clock.sequence, in_->number, atomic, quiet});
    }
    return number;
}

// A store of no single wave: of several that raced. It lasts until the next barrier, or if several workgroups took
// part until the end of the launch.
u32 Checker::raced(const Event& other) {
    const bool within = other.group == group_->group.number;
    const u32 group = within ? other.group : NOBODY;
    u32& number = raced_[u64(in_->number) << 40 ^ u64(group_->epoch) << 20 ^ group];
    if (number == 0) {
        number = u32(usage_->events.size());
        usage_->events.push_back({group, NOBODY, group_->epoch, NOBODY, in_->number, false, false});
    }
    return number;
}

// The event for the atomic operations that another one stands for, and one more.
u32 Checker::joined(u32 before, u32 more) {
    u32& number = usage_->joined[u64(before) << 32 | more];
    if (number) return number;
    const Event &old = usage_->events[before], &last = usage_->events[more];
    std::vector<u32> all;
    for (u32 one : old.several ? usage_->several[old.several] : std::vector<u32>{before}) {
        const Event& e = usage_->events[one];
        if (e.group != last.group || e.wave != last.wave) all.push_back(one);
    }
    if (all.empty()) return number = more;
    all.push_back(more);
    Event made = last;
    made.several = u32(usage_->several.size());
    usage_->several.push_back(std::move(all));
    number = u32(usage_->events.size());
    usage_->events.push_back(made);
    return number;
}

// Whether an earlier event is ordered before what the current wave does now.
bool Checker::ordered(const Event& e) const {
    if (e.several) {
        for (u32 one : usage_->several[e.several])
            if (!ordered(usage_->events[one])) return false;
        return true;
    }
    if (e.group == group_->group.number && (e.wave == now_->a.id || e.epoch < group_->epoch)) return true;
    return now_->clock.acquired.covers(e) || group_->clock.acquired.covers(e);
}

u64 Checker::race_on_read(const Access& x, Cells c, u32 count, u8* before, u32* other) {
    const bool atomic = coherent();
    const u32 me = cell(event(atomic, false), u32(x.lane));
    const u64 mine = u64(group_->group.number) << 32 | now_->a.id;
    u32 last = 0;
    bool bad = false;
    u64 found = 0;
    for (u32 n = 0; n < count; ++n) {
        const u32 w = c.writer[n], r = c.reader[n];
        if (w != last) {
            const Event& e = usage_->events[w >> 6];
            last = w, bad = w && !e.quiet && !(atomic && e.atomic) && !ordered(e);
        }
        if (bad) found |= 1ull << n, *other = w, before[n] = c.before[n];
        if (r == me) continue;
        const Event& e = usage_->events[r >> 6];
        if (r && (u64(e.group) << 32 | e.wave) != mine) c.earlier[n] = r;
        c.reader[n] = me;
    }
    return found;
}

u64 Checker::race_on_write(const Access& x, Cells c, u32 count, u64 changed, const u8* before, u32* other) {
    const bool atomic = coherent();
    const u64 all = count >= 64 ? ALL : (1ull << count) - 1;
    const u32 loud = cell(event(atomic, false), u32(x.lane)), quiet = (changed & all) == all ? 0 : cell(event(atomic, true), u32(x.lane));
    u64 found = 0;
    for (u32 n = 0; n < count; ++n) {
        const bool changes = changed >> n & 1;
        auto conflicts = [&](u32 use) {
            const Event& e = usage_->events[use >> 6];
            return use && !(atomic && e.atomic) && !ordered(e);
        };
        const u32 w = c.writer[n];
        const bool conflict = conflicts(w);
        if (conflict && changes) found |= 1ull << n, *other = w;
        if (changes && (conflicts(c.reader[n]) || conflicts(c.earlier[n]))) ++usage_->suspects;
        if (changes) {
            c.before[n] = before[n];
            if (conflict) c.writer[n] = cell(raced(usage_->events[w >> 6]), u32(x.lane));
            else if (atomic && w && usage_->events[w >> 6].atomic && !ordered(usage_->events[w >> 6])) c.writer[n] = cell(joined(w >> 6, loud >> 6), u32(x.lane));
            else c.writer[n] = loud;
        }
        else if (!conflict) c.writer[n] = quiet;
    }
    return found;
}

template <class F> static u64 in_pages(const Access& x, SharedMemory& lds, Usage& usage, F act) {
    if (x.space == Access::Space::lds) {
        const u32 at = u32(x.address);
        return act(Cells{lds.writer.data() + at, lds.reader.data() + at, lds.earlier.data() + at, lds.before.data() + at}, x.bytes, 0u);
    }
    u64 found = 0;
    for (u32 done = 0; done < x.bytes;) {
        const u64 at = x.address + done;
        const u32 offset = u32(at % PAGE), count = std::min(x.bytes - done, PAGE - offset);
        Uses& page = usage.page(at);
        found |= act(Cells{page.writer + offset, page.reader + offset, page.earlier + offset, page.before + offset}, count, done) << done;
        done += count;
    }
    return found;
}
u64 Checker::races_of_read(const Access& x, u8* before, u32* other) {
    if (x.space == Access::Space::scratch || (x.space == Access::Space::memory && !x.writable)) return 0;
    return in_pages(x, group_->lds, *usage_, [&](Cells c, u32 count, u32 done) { return race_on_read(x, c, count, before + done, other); });
}
u64 Checker::races_of_write(const Access& x, u64 changed, const u8* before, u32* other) {
    return in_pages(x, group_->lds, *usage_, [&](Cells c, u32 count, u32 done) { return race_on_write(x, c, count, changed >> done, before + done, other); });
}

void Checker::release() {
    Clock& clock = now_->clock;
    auto made = std::make_shared<Known>(clock.acquired);
    made->add(group_->clock.acquired);
    made->add(group_->group.number, now_->a.id, group_->epoch, clock.sequence);
    clock.released = std::move(made);
    ++clock.sequence, ++clock.version;
}

// What an atomic operation of the current wave passes on: its last release, and those that barriers ordered before.
const Release& Checker::published() {
    Clock& clock = now_->clock;
    if (clock.published_version != clock.version) {
        clock.published_version = clock.version;
        auto made = std::make_shared<Known>();
        if (clock.released) made->add(*clock.released);
        if (group_->clock.released) made->add(*group_->clock.released);
        clock.published = made->empty() ? nullptr : Release(std::move(made));
    }
    return clock.published;
}

// Pass releases on through the places of atomic operations and volatile accesses.
void Checker::synchronise() {
    Clock& clock = now_->clock;
    const Nature nature = Nature(effect_->nature);
    bool lds = false;
    for (u32 n = 0; n < count_; ++n) lds |= accesses_[n].space == Access::Space::lds;
    const bool returns = lds ? effect_->writes != 0 : nature == Nature::load || (in_->flags & SC0);
    if (lds) {
        if (nature != Nature::atomic || !returns) return;
        release();  // waves of a workgroup see each other's LDS in order
    } else if (!coherent()) return;
    for (u32 n = 0; n < count_; ++n) {
        const Access& x = accesses_[n];
        if (!x.where || x.same || !x.first) continue;
        std::vector<Release>& at = usage_->at(lds ? u64(group_->group.number) << 20 | u32(x.address) : x.address);
        if (returns && !at.empty()) clock.see(at);
        if (nature == Nature::load) continue;
        const Release& out = lds ? clock.released : published();
        if (out && (at.empty() || at.back() != out)) at.push_back(out);
    }
    const bool at_once = nature == Nature::atomic || (in_->flags & (SC0 | SC1)) == (SC0 | SC1);
    if (returns && at_once) clock.acquire();
}

}  // namespace machine
