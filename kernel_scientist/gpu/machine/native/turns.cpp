// The order of waves and workgroups in a checking run: turns, barriers, and waves that wait for ever.
#include "checker.h"
#include "denormals.h"

namespace machine {

constexpr u64 TURN = 1 << 16;

// Find out whether a wave turns in a circle: the same state comes back, and memory did not change meanwhile.
bool Checker::notice(Twins& t) {
    const size_t words = t.registers_a.size();
    if (t.a.pc == t.seen_pc && t.seen_version == version_ && !std::memcmp(t.seen.data(), t.a.s, sizeof t.a.s) &&
        !std::memcmp(t.seen.data() + SCALARS, t.a.v, words * 4) && t.seen_scratch == t.scratch_a) {
        t.stuck_version = version_, t.alone = t.seen_epoch == group_->epoch, t.circle = in_->number;
        return true;
    }
    ++t.visits;
    if (t.visits & (t.visits - 1)) return false;  // looked at ever more rarely
    t.seen_pc = t.a.pc, t.seen_version = version_, t.seen_epoch = group_->epoch, t.seen_at = t.done;
    t.seen.resize(SCALARS + words);
    std::memcpy(t.seen.data(), t.a.s, sizeof t.a.s);
    std::memcpy(t.seen.data() + SCALARS, t.a.v, words * 4);
    t.seen_scratch = t.scratch_a;  // a loop that is not optimised has its state there
    return false;
}

// All waves of a workgroup stand at a barrier, or have ended: what was before it is ordered before what follows.
void Checker::stand(CheckedGroup& group) {
    Twins* first = nullptr;
    auto passed = std::make_shared<Known>();
    for (auto& t : group.waves) {
        group.clock.acquired.add(t->clock.acquired);
        if (t->clock.released) passed->add(*t->clock.released);
        ++t->clock.version;
        if (t->a.state != State::at_barrier) continue;
        t->a.state = t->b.state = State::running;
        if (!first) first = t.get();
        else if (t->barrier != first->barrier) {
            group_ = &group, now_ = t.get(), in_ = &launch_.program.instructions[t->barrier];
            const Event other{group.group.number, first->a.id, group.epoch, 0, first->barrier, false, false};
            record(Cause::barriers, 0, 0, 0, &other);
        }
    }
    if (!passed->empty()) {
        if (group.clock.released) passed->add(*group.clock.released);
        group.clock.released = std::move(passed);
    }
    ++group.epoch;
}

// Run a workgroup's waves in turns. Returns whether it ended.
bool Checker::advance(CheckedGroup& group) {
    const size_t count = group.waves.size();
    const u64 began = total;
    for (auto& t : group.waves)
        if (t->a.state == State::yielded) t->a.state = t->b.state = State::running;
    while (true) {
        bool yielded = false, waiting = false;
        for (size_t n = 0; n < count; ++n) {
            Twins& t = *group.waves[backwards_ ? count - 1 - n : n];
            if (t.a.state == State::running) step(group, t);
            yielded |= t.a.state == State::yielded, waiting |= t.a.state == State::at_barrier;
        }
        if (yielded) return false;
        if (!waiting) return true;
        stand(group);
        if (total - began > TURN) return false;  // its waves may meet at a barrier while they wait for others
    }
}

// Whether no wave can go on: each waits at a barrier, or turns in a circle. Tells which.
bool Checker::hopeless(const std::vector<std::unique_ptr<CheckedGroup>>& waiting) {
    auto circles = [&](const Twins& t) { return t.a.state != State::ended && t.stuck_version == version_; };
    for (const auto& group : waiting) {
        bool alone = true, others = false;
        for (const auto& t : group->waves) {
            if (t->a.state == State::ended) continue;
            if (!circles(*t) && t->a.state != State::at_barrier) return false;
            if (circles(*t)) alone &= t->alone;
            else others = true;
        }
        if (others && !alone) return false;  // what waits at the barrier goes on when it is passed
    }
    for (const auto& group : waiting)
        for (const auto& t : group->waves) {
            if (!circles(*t)) continue;
            group_ = group.get(), now_ = t.get(), in_ = &launch_.program.instructions[t->polled];
            const Event loop{group->group.number, t->a.id, group->epoch, 0, t->circle, false, false};
            const bool reads = t->polled_at > t->seen_at;  // else it has read that before it came into the loop
            if (!t->polled_address) in_ = &launch_.program.instructions[t->circle];
            record(Cause::deadlock, u32(std::countr_zero(t->a.exec() | 1ull << 63)), t->polled_address, 0, reads ? nullptr : &loop);
        }
    return true;
}

Outcome Checker::run(bool backwards) {
    const Order& order = launch_.order;
    usage_ = std::make_unique<Usage>(), raced_.clear();
    backwards_ = backwards, sign_ = backwards ? 0x80808080u : 0;
    odd_ = check_.seed, ended = 0, started = 0;
    const u32* chosen = reinterpret_cast<const u32*>(order.chosen);
    std::vector<std::unique_ptr<CheckedGroup>> waiting;
    const u32 most = backwards ? 0 : order.resident;  // a GPU starts them in ascending order
    const u64 began = total;
    Outcome outcome = Outcome::ended;
    const FloatMode before = float_mode();
    while (started < order.groups || !waiting.empty()) {
        if (order.most && total - began > order.most) {
            outcome = Outcome::too_many;
            break;
        }
        const u64 version = version_;
        if (started < order.groups && (!most || waiting.size() < most)) {
            const u32 place = backwards ? order.groups - 1 - u32(started) : u32(started);
            ++started;
            auto group = begun(chosen ? chosen[place] : order.first_group + place);
            if (advance(*group)) ++ended;
            else waiting.push_back(std::move(group));
        }
        for (size_t k = 0; k < waiting.size();) {
            if (advance(*waiting[k])) ++ended, waiting.erase(waiting.begin() + k);
            else ++k;
        }
        const bool full = most && waiting.size() >= most;
        if ((full || started == order.groups) && !waiting.empty() && version == version_ && hopeless(waiting)) {
            outcome = Outcome::stuck;
            break;
        }
    }
    set_float_mode(before);
    return outcome;
}

}  // namespace machine

using namespace machine;

extern "C" {

int machine_check_order_bytes() { return sizeof(CheckOrder); }
int machine_effect_bytes() { return sizeof(Effect); }

// Run a launch and check it. `moved`: where each allocation lies for the twin. `backwards`: 0 in ascending order, and
// in descending order as well if that may show more; 1 only in descending order. `done`: wave instructions, and workgroups
// that ended and that started. A launch that runs more than `Order::most` instructions is given up, and memory is as before.
int machine_check(const void* program, const void* order, const void* check, const void* allocations, const u64* moved, size_t count,
                  const void* effects, const u16* registers, void* shadow, u64* executed, u64* lanes, u64* done) {
    Launch launch(*static_cast<const Program*>(program), *static_cast<const Order*>(order), static_cast<const Allocation*>(allocations), count);
    const CheckOrder& how = *static_cast<const CheckOrder*>(check);
    Shadow& known = *static_cast<Shadow*>(shadow);
    Checker checker(launch, how, moved, static_cast<const Effect*>(effects), registers, known);
    Outcome outcome = checker.run(launch.order.shuffle);
    std::memcpy(executed, checker.executed.data(), checker.executed.size() * 8);
    std::memcpy(lanes, checker.lanes.data(), checker.lanes.size() * 8);
    done[0] = checker.total, done[1] = checker.ended, done[2] = checker.started;
    if (outcome == Outcome::ended && (checker.suspects() || known.unused()) && !launch.order.shuffle) {
        checker.undo();
        known.flip();
        known.counted = known.records.size();
        outcome = checker.run(true);
        known.counted = 2;
        checker.join();
    }
    if (outcome == Outcome::too_many) checker.undo();
    for (const Finding& f : launch.findings) {
        const Fault fault = Fault(f.fault);
        const Cause kind = fault == Fault::refused ? Cause::refused : fault == Fault::trap ? Cause::trap : Cause::jump;
        const u32* grid = launch.order.grid;
        const u32 group = f.group[0] + grid[0] * (f.group[1] + grid[1] * f.group[2]);
        known.reach(known.record(kind, how.launch, f.instruction, group, f.wave, f.lane, f.address, 0, nullptr, 0), Reach::at_once, f.instruction);
    }
    return int(outcome);
}
}
