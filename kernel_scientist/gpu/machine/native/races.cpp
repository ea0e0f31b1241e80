// Races: accesses to one byte by different waves that nothing orders, at least one of which changes it.
#include "checker.h"

namespace machine {

constexpr size_t MOST_RELEASES = 32;  // at one place, before they become one

// Whether the instruction's accesses are atomic or volatile, and so may meet others of the kind. In LDS only operations
// can be told from plain accesses.
bool Checker::coherent() const { return Nature(effect_->nature) == Nature::atomic || (in_->flags & SC1); }

// The number of the event that the current instruction is, until the next barrier or release.
u32 Checker::event(bool atomic, bool quiet) {
    if (mine_[quiet] != NOBODY) return mine_[quiet];
    auto& [version, number] = now_->events[2 * in_->number + quiet];
    if (version != now_->clock.version) {
        version = now_->clock.version, number = u32(usage_->events.size());
        if (number >= 1u << 26) return mine_[quiet] = number = 0;  // too many to tell apart
        usage_->events.push_back({group_->group.number, now_->a.id, group_->epoch, now_->clock.sequence, in_->number, atomic, quiet});
    }
    return mine_[quiet] = number;
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

// As `ordered`, for the number of an event. Lanes mostly ask for the same one.
bool Checker::in_order(u32 number) {
    if (number == asked_) return answer_;
    return asked_ = number, answer_ = ordered(usage_->events[number]);
}

// Whether all stores to a line are ordered before what the current wave does. False if that is not known.
bool Checker::settled(const Line& line, bool lds) {
    if (line.sole == 0) return true;
    if (line.sole != MIXED) return in_order(line.sole);
    return lds && usage_->events[line.latest].epoch < group_->epoch;
}

u64 Checker::race_on_read(Cells c, u32 count, u8* before, u32* other) {
    const bool atomic = coherent();
    u64 found = 0;
    for (u32 n = 0; n < count; ++n) {
        const u32 w = c.writer[n];
        if (!w || in_order(w >> 6)) continue;
        const Event& e = usage_->events[w >> 6];
        if (!e.quiet && !(atomic && e.atomic)) found |= 1ull << n, *other = w, before[n] = c.before[n];
    }
    return found;
}

u64 Checker::race_on_write(const Access& x, Cells c, u32 count, u64 changed, const u8* before, u32* other) {
    const bool atomic = coherent();
    const u32 loud = cell(event(atomic, false), u32(x.lane));
    u64 found = 0;
    for (u32 n = 0; n < count; ++n) {
        const u32 w = c.writer[n];
        const bool apart = w && !in_order(w >> 6), conflict = apart && !(atomic && usage_->events[w >> 6].atomic);
        if (!(changed >> n & 1)) {
            if (!conflict) c.writer[n] = cell(event(atomic, true), u32(x.lane));
            continue;
        }
        c.before[n] = before[n], c.writer[n] = loud;
        if (conflict) found |= 1ull << n, *other = w, c.writer[n] = cell(raced(usage_->events[w >> 6]), u32(x.lane));
        else if (apart) c.writer[n] = cell(joined(w >> 6, loud >> 6), u32(x.lane));
    }
    return found;
}

// Call `act(cells, bytes before, count)` for the parts of an access that lie in one line each.
template <class F> static u64 in_lines(const Access& x, SharedMemory& lds, Usage& usage, F act) {
    u64 found = 0;
    for (u32 done = 0; done < x.bytes;) {
        const u64 at = x.address + done;
        const u32 count = std::min(x.bytes - done, LINE - u32(at % LINE));
        if (x.space == Access::Space::lds) {
            const u32 n = u32(at);
            found |= act(Cells{lds.writer.data() + n, lds.before.data() + n, lds.lines.data() + n / LINE}, done, count) << done;
        } else {
            Uses& page = usage.page(at);
            const u32 n = u32(at % PAGE);
            found |= act(Cells{page.writer + n, page.before + n, page.lines + n / LINE}, done, count) << done;
        }
        done += count;
    }
    return found;
}
u64 Checker::races_of_read(const Access& x, u8* before, u32* other) {
    if (x.space == Access::Space::scratch || (x.space == Access::Space::memory && !x.writable)) return 0;
    const u32 me = event(coherent(), false);
    return in_lines(x, group_->lds, *usage_, [&](Cells c, u32 done, u32 count) {
        Line& line = *c.line;
        if (line.reader != me) {
            const Event& last = usage_->events[line.reader];
            if (line.reader && (last.wave != now_->a.id || last.group != group_->group.number)) line.earlier = line.reader;
            line.reader = me;
        }
        return settled(line, x.space == Access::Space::lds) ? 0 : race_on_read(c, count, before + done, other);
    });
}
u64 Checker::races_of_write(const Access& x, u64 changed, const u8* before, u32* other) {
    const bool atomic = coherent();
    const u32 me = event(atomic, false);
    return in_lines(x, group_->lds, *usage_, [&](Cells c, u32 done, u32 count) -> u64 {
        Line& line = *c.line;
        const u64 all = count >= 64 ? ALL : (1ull << count) - 1, part = changed >> done & all;
        auto conflicts = [&](u32 use) { return use && !in_order(use) && !(atomic && usage_->events[use].atomic); };
        if (part && (conflicts(line.reader) || conflicts(line.earlier))) ++usage_->suspects;
        const bool clear = settled(line, x.space == Access::Space::lds);
        line.sole = clear ? me : MIXED, line.latest = me;
        if (!clear || part != all) return race_on_write(x, c, count, part, before + done, other);
        std::fill_n(c.writer, count, cell(me, u32(x.lane)));
        std::memcpy(c.before, before + done, count);
        return 0;
    });
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
        if (!out || (!at.empty() && at.back() == out)) continue;
        if (at.size() >= MOST_RELEASES) {
            auto all = std::make_shared<Known>();
            for (const Release& one : at) all->add(*one);
            at.assign(1, all);
        }
        at.push_back(out);
    }
    const bool at_once = nature == Nature::atomic || (in_->flags & (SC0 | SC1)) == (SC0 | SC1);
    if (returns && at_once) clock.acquire();
}

}  // namespace machine
