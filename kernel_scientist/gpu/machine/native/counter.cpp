// Counting of lines, conflicts and waits in the workgroups of a sample.
#include "counter.h"

#include <algorithm>
#include <cstring>

namespace machine {

constexpr u64 LINE = 128, WORD = 4;
constexpr size_t MOST_PENDING = 63;  // the largest vmcnt: a wave stalls rather than have more accesses outstanding
constexpr u64 SPACE = 40;            // bits of a line's number within its allocation

Cache::Cache() {
    std::fill_n(heads, HEADS, NONE), std::fill_n(line, LINES, ~0ull);
    for (int n = 0; n <= LINES; ++n) {
        newer[n] = u16(n ? n - 1 : LINES), older[n] = u16(n < LINES ? n + 1 : 0);
        if (n < LINES) next[n] = NONE;
    }
}

void Cache::renew(u16 at) {
    older[newer[at]] = older[at], newer[older[at]] = newer[at];
    older[at] = older[NONE], newer[at] = NONE;
    newer[older[at]] = at, older[NONE] = at;
}

bool Cache::holds(u64 number) {
    u16& first = head(number);
    for (u16 at = first; at != NONE; at = next[at])
        if (line[at] == number) return renew(at), true;
    const u16 at = newer[NONE];
    if (line[at] != ~0ull) {
        u16* link = &head(line[at]);
        while (*link != at) link = &next[*link];
        *link = next[at];
    }
    line[at] = number, next[at] = first, first = at;
    renew(at);
    return false;
}

void Counted::end() {
    std::sort(shared.begin(), shared.end());
    const auto last = std::unique(shared.begin(), shared.end());
    reinterpret_cast<Totals*>(order.totals)->shared = u64(last - shared.begin());
}

Counter::Counter(Counted& c, const Launch& l, u8 samples, u32 at, size_t waves)
    : counted(c), allocations(l.allocations), launch(l), sample(samples), place(at),
      accessed(l.program.instructions.size()), waits(waves),
      patterns(l.program.instructions.size()) {}

Counter::~Counter() {
    for (Waits& one : waits) totals.rounds += one.round;
    totals.waves = waits.size();
    std::lock_guard lock(counted.guard);
    Totals& sum = *reinterpret_cast<Totals*>(counted.order.totals);
    if (sample & SPREAD) {
        Accessed* to = reinterpret_cast<Accessed*>(counted.order.accessed);
        for (size_t n = 0; n < accessed.size(); ++n) {
            to[n].executed += accessed[n].executed, to[n].asked += accessed[n].asked, to[n].lines += accessed[n].lines;
            to[n].requests += accessed[n].requests, to[n].conflicts += accessed[n].conflicts;
            to[n].waits += accessed[n].waits;
        }
        sum.waves += totals.waves, sum.steps += totals.steps, sum.rounds += totals.rounds;
        sum.reloads += totals.reloads, sum.overlapped += totals.overlapped;
        reinterpret_cast<u64*>(counted.order.work)[place] = totals.steps;
    }
    if (sample & SHARING) {
        sum.alone += totals.alone;
        counted.shared.insert(counted.shared.end(), lines.begin(), lines.end());
    }
}

void Counter::step(const Wave& wave, const Instruction& in) {
    Waits& own = waits[wave.id];
    ++totals.steps, ++own.steps, ++accessed[in.number].executed;
    const Behaviour& is = reinterpret_cast<const Behaviour*>(counted.order.behaviour)[in.number];
    if (Role(is.role) == Role::none) return;
    if (Role(is.role) == Role::wait) {
        accessed[in.number].waits += wait(own, is.left);
        return;
    }
    own.pending.push_back({Role(is.role), own.round, own.steps});
    if (own.pending.size() > MOST_PENDING) wait(own, MOST_PENDING);
}

// Loads return in order. A wait takes time if it is for a load that was issued after the wave waited last; the wave's
// instructions since then, on average over these loads, are done meanwhile. Returns whether it takes time.
bool Counter::wait(Waits& of, size_t left) {
    u64 loads = 0, reloads = 0, ages = 0;
    for (; of.pending.size() > left; of.pending.pop_front()) {
        const Pending& one = of.pending.front();
        if (one.role == Role::other || one.round != of.round) continue;
        ages += of.steps - one.step, ++loads, reloads += one.role == Role::scratch_load;
    }
    if (!loads) return false;
    ++of.round;
    totals.overlapped += ages / loads, totals.reloads += loads == reloads;
    return true;
}

// A number that tells lines apart. On the device torch aligns allocations to lines, on the host it does not.
u64 Counter::line(u64 address) {
    if (!near || address - near->start >= near->bytes) near = launch.containing(address);
    if (!near || near->start == launch.order.arguments) return ~0ull;
    const u64 index = u64(near - allocations);
    reinterpret_cast<u8*>(counted.order.touched)[index] = 1;
    return index << SPACE | (address - near->start) / LINE;
}

// Whether an access may touch a second line or leave its allocation; asked after `line(address)`.
bool Counter::crosses(u64 address, u32 bytes) const {
    if (!near) return true;
    const u64 at = address - near->start;
    return at % LINE + bytes > LINE || at + bytes > near->bytes;
}

void Counter::touch(Accessed& to, u64 number) {
    ++to.lines;
    if (cache.holds(number)) return;
    ++to.requests;
    if (sample & SHARING) ++totals.alone, lines.push_back(number);
}

void Counter::memory(const Instruction& in, const u64* addresses, u64 mask, u32 bytes) {
    u64 found[2 * LANES];
    u32 offsets[LANES];
    u64 in_lds = 0;
    int count = 0;
    Accessed& to = accessed[in.number];
    for (u64 left = mask; left; left &= left - 1) {
        const int l = std::countr_zero(left);
        const u64 address = addresses[l];
        if ((address & ~0xffffffffull) == SHARED_APERTURE) in_lds |= 1ull << l, offsets[l] = u32(address);
        const u64 first = line(address), last = crosses(address, bytes) ? line(address + bytes - 1) : first;
        if (first == ~0ull || last == ~0ull) continue;  // LDS, scratch, arguments, outside
        to.asked += bytes;
        if (!count || found[count - 1] != first) found[count++] = first;
        if (last != first) found[count++] = last;
    }
    if (in_lds) to.conflicts += extra(offsets, 0, bytes, in_lds, LANES);
    std::sort(found, found + count);
    const u64* end = std::unique(found, found + count);
    for (const u64* at = found; at < end; ++at) touch(to, *at);
}

// Cycles of lanes that are served together, beyond those without conflicts: one for each word of a bank.
u64 Counter::extra(const u32* addresses, u32 offset, u32 bytes, u64 lanes, u32 all) const {
    if (!counted.order.banks) return 0;
    const u32 words = bytes < WORD ? 1 : bytes / WORD, banks = u32(counted.order.banks);
    constexpr u32 MOST_BANKS = 64;
    constexpr u16 END = 4 * LANES;
    u32 found[4 * LANES], of_bank[MOST_BANKS] = {}, busiest = 0;
    u16 last[MOST_BANKS], before[4 * LANES], count = 0;  // the distinct words of each bank, linked
    std::fill_n(last, banks, END);
    for (u64 left = lanes; left; left &= left - 1)
        for (u32 w = 0; w < words; ++w) {
            const u32 word = (addresses[std::countr_zero(left)] + offset) / WORD + w, bank = word & (banks - 1);
            u16 at = last[bank];
            while (at != END && found[at] != word) at = before[at];
            if (at != END) continue;
            found[count] = word, before[count] = last[bank], last[bank] = count++;
            busiest = std::max(busiest, ++of_bank[bank]);
        }
    const u32 least = all * words / banks;
    return busiest > least ? busiest - least : 0;
}

void Counter::lds(const Wave& wave, const Instruction& in, const u32* addresses, u32 offset, u32 bytes, bool reads) {
    if (!counted.order.banks) return;
    const u64 exec = wave.exec();
    if (!exec) return;
    const u32 first = addresses[std::countr_zero(exec)], start = (first + offset) % WORD;
    u32 relative[LANES];
    for (int l = 0; l < LANES; ++l) relative[l] = exec >> l & 1 ? addresses[l] - first : 0;
    std::unique_ptr<Pattern>& last = patterns[in.number];
    if (!last) last = std::make_unique<Pattern>();
    if (last->lanes != exec || last->start != start || std::memcmp(last->relative, relative, sizeof relative)) {
        last->lanes = exec, last->start = start;
        last->conflicts = conflicts(addresses, offset, bytes, reads, exec);
        std::memcpy(last->relative, relative, sizeof relative);
    }
    accessed[in.number].conflicts += last->conflicts;
}

// Accesses of 16 bytes are served 8 lanes at a time: reads in these groups, writes as neighbours (ROCm's documentation of
// Composable Kernel, LDS bank conflicts). The groups of others are not documented: the busiest bank of all lanes is a
// lower bound.
u64 Counter::conflicts(const u32* addresses, u32 offset, u32 bytes, bool reads, u64 exec) const {
    if (bytes != 16) return extra(addresses, offset, bytes, exec, LANES);
    constexpr u64 quads[4][2] = {{0, 20}, {4, 16}, {8, 28}, {12, 24}};
    u64 sum = 0;
    for (int n = 0; n < 8; ++n) {
        const u64* q = quads[n & 3];
        const u64 group = reads ? (0xfull << q[0] | 0xfull << q[1]) << (n & 4 ? 32 : 0) : 0xffull << 8 * n;
        sum += extra(addresses, offset, bytes, exec & group, 8);
    }
    return sum;
}

}  // namespace machine
