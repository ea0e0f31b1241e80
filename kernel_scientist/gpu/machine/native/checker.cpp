// The steps of a checking run: execute an instruction twice, compare, say where a difference comes from.
#include "checker.h"
#include "denormals.h"

namespace machine {

constexpr u64 SLICE = 1 << 22, PATIENCE = 2000;
constexpr u32 MOST_ACCESSES = 1024, MOST_DISAGREEMENTS = 16;

Checker::Checker(Launch& launch, const CheckOrder& check, const u64* moved, const Effect* effects, const u16* registers, Shadow& shadow)
    : executed(launch.program.instructions.size()), lanes(launch.program.instructions.size()), launch_(launch), check_(check),
      moved_(moved), effects_(effects), registers_(registers), shadow_(shadow), usage_(std::make_unique<Usage>()),
      odd_(check.seed), accesses_(MOST_ACCESSES) {
    for (u32 n = 0; n < launch.count; ++n)
        if (moved[n] >= REGION && moved[n] < REGIONS_END) regions_[moved[n] / REGION] = n;
}

u32 Checker::record(Cause kind, u32 lane, u64 address, u64 start, const Event* other, u32 other_lane) {
    if (other && other->several)  // one of several that comes in question
        for (u32 one : usage_->several[other->several])
            if (!ordered(usage_->events[one])) other = &usage_->events[one];
    const u32 found = shadow_.record(kind, check_.launch, in_->number, group_->group.number, now_->a.id, lane, address, start, other, other_lane);
    if (kind >= Cause::read_outside) shadow_.reach(found, Reach::at_once, in_->number);
    return found;
}

// A workgroup at its start. What is undefined is 0 in the first run and something else in the twin.
std::unique_ptr<CheckedGroup> Checker::begun(u32 linear) {
    auto made = std::make_unique<CheckedGroup>(launch_, linear);
    const Order& order = launch_.order;
    const u32 count = (order.block[0] * order.block[1] * order.block[2] + LANES - 1) / LANES;
    auto odd = [&](auto& list, size_t size) {
        list.resize(size);
        for (size_t n = 0; n < size; n += 4) {
            const u32 word = odd_word(odd_) ^ sign_;
            std::memcpy(list.data() + n, &word, std::min<size_t>(4, size - n));
        }
    };
    SharedMemory& lds = made->lds;
    lds.a.resize(order.lds_bytes), odd(lds.b, order.lds_bytes), lds.origin.resize(order.lds_bytes / 4 + 1);
    lds.writer.resize(order.lds_bytes), lds.before.resize(order.lds_bytes), lds.lines.resize(order.lds_bytes / LINE + 1);
    for (u32 w = 0; w < count; ++w) {
        Twins& t = *made->waves.emplace_back(std::make_unique<Twins>());
        const size_t registers = size_t(order.registers) * LANES;
        t.registers_a.resize(registers), t.registers_b.resize(registers), t.origins.resize(registers);
        for (u32& word : t.registers_b) word = odd_word(odd_) ^ sign_;
        t.scratch_a.resize(size_t(order.scratch_bytes) * LANES), odd(t.scratch_b, t.scratch_a.size());
        t.scratch_origins.resize(t.scratch_a.size() / 4);
        t.events.resize(2 * launch_.program.instructions.size());
        std::memset(t.a.s, 0, sizeof t.a.s);
        for (u32& word : t.b.s) word = odd_word(odd_);
        for (u32 n = 0; n < order.first_scalars; ++n) t.scalar_origins[n] = POINTER;
        t.a.v = t.registers_a.data(), t.b.v = t.registers_b.data();
        t.a.watch = t.b.watch = this;
        start(t.a, made->group, w, order.scalars), start(t.b, made->group, w, check_.scalars);
    }
    return made;
}

static u64 differing(const u32* a, const u32* b) {
    u64 mask = 0;
    u32 any = 0;
    for (int l = 0; l < LANES; ++l) any |= a[l] ^ b[l];
    if (!any) return 0;
    for (int l = 0; l < LANES; ++l) mask |= u64(a[l] != b[l]) << l;
    return mask;
}

// Note what differs among the registers that the instruction reads.
void Checker::look(Twins& t) {
    exec_a_ = t.a.exec(), exec_b_ = t.b.exec();
    any_ = exec_a_ != exec_b_, scalar_origin_ = 0, scalar_differs_ = false;
    const u16* reads = registers_ + effect_->first;
    for (u32 k = 0; k < effect_->reads; ++k) {
        if (reads[k] >= SCALAR) {
            const u32 n = reads[k] - SCALAR;
            masks_[k] = t.a.s[n] != t.b.s[n];
            if (masks_[k]) scalar_differs_ = true, scalar_origin_ = std::max(scalar_origin_, t.scalar_origins[n]);
        } else masks_[k] = differing(t.a.lanes(reads[k]), t.b.lanes(reads[k]));
        any_ |= masks_[k] != 0;
    }
}

// Where a difference in what the instruction makes comes from. `lane`: -1 for a result that is no lane's own.
u32 Checker::source(int lane, bool addresses) {
    const u16* reads = registers_ + effect_->first;
    const u32 count = addresses ? effect_->addresses : effect_->reads;
    u32 best = 0;
    bool unset = false;
    auto take = [&](u32 origin) {
        unset |= origin == 0;
        if (best <= POINTER) best = std::max(best, origin);
    };
    if (const u32 loaded = addresses ? 0 : lane >= 0 ? loaded_[lane] : loaded_any_) take(loaded);
    if (lane >= 0)
        for (u32 k = 0; k < count; ++k)
            if (reads[k] < SCALAR && masks_[k] >> lane & 1) take(now_->origins[reads[k] * LANES + lane]);
    for (u32 k = 0; k < count; ++k)
        if (reads[k] >= SCALAR && masks_[k]) take(now_->scalar_origins[reads[k] - SCALAR]);
    if (best > POINTER || (addresses && lane >= 0)) return best > POINTER || !unset ? best : record(Cause::unset_register, u32(lane), 0, 0);
    if ((exec_a_ ^ exec_b_) >> (lane < 0 ? 0 : lane) & (lane < 0 ? ALL : 1)) take(now_->scalar_origins[EXEC]);
    if ((lane < 0 ? best <= POINTER : best == 0) && !unset) {  // another lane's; of one that takes part if there is any
        for (u32 k = 0; k < count; ++k) {
            if (reads[k] >= SCALAR || !masks_[k]) continue;
            const u64 active = masks_[k] & (exec_a_ | exec_b_);
            take(now_->origins[reads[k] * LANES + std::countr_zero(active ? active : masks_[k])]);
        }
        if (loaded_any_) take(loaded_any_);
    }
    if (best > POINTER || !unset) return best;
    return record(Cause::unset_register, lane < 0 ? 0 : u32(lane), 0, 0);
}

// What is copied comes from where its original does. If nobody set that, the fault is where it is used.
void Checker::moved(Twins& t) {
    const u16 *reads = registers_ + effect_->first, *writes = reads + effect_->reads;
    u32 origins[2][LANES];
    const u32 count = std::min<u32>(2, std::min(effect_->reads, effect_->writes));
    for (u32 k = 0; k < count; ++k)
        for (int l = 0; l < LANES; ++l)
            origins[k][l] = reads[k] >= SCALAR ? t.scalar_origins[reads[k] - SCALAR] : t.origins[size_t(reads[k]) * LANES + l];
    for (u32 k = 0; k < count; ++k) {
        if (writes[k] >= SCALAR) {
            t.scalar_origins[writes[k] - SCALAR] = origins[k][0];
            continue;
        }
        u64 left = differing(t.a.lanes(writes[k]), t.b.lanes(writes[k])) & exec_a_;
        for (; left; left &= left - 1) t.origins[size_t(writes[k]) * LANES + std::countr_zero(left)] = origins[k][std::countr_zero(left)];
    }
}

// Say of each register that is written and differs where that comes from.
void Checker::settle(Twins& t) {
    if (Nature(effect_->nature) == Nature::move && exec_a_ == exec_b_) return any_ ? moved(t) : void();
    const u16* writes = registers_ + effect_->first + effect_->reads;
    u64 scope = exec_a_ | exec_b_;
    if (Nature(effect_->nature) == Nature::matrix) scope = ALL;
    if (Nature(effect_->nature) == Nature::one_lane) {
        const Operand& which = in_->operand[2];
        scope = 1ull << ((which.kind == Kind::constant ? u32(which.bits) : t.a.s[which.index]) & 63);
    }
    const u16* reads = registers_ + effect_->first;
    constexpr int ADDRESS = -1, SEVERAL = -2;
    int sole = ADDRESS;  // what differs: one vector register, or only scalar registers that hold addresses
    for (u32 k = 0; k < effect_->reads; ++k)
        if (reads[k] < SCALAR && masks_[k]) sole = sole == ADDRESS ? int(k) : SEVERAL;
    if (sole == ADDRESS && !scalar_differs_) sole = SEVERAL;
    if (loaded_any_ || exec_a_ != exec_b_ || (scalar_differs_ && (sole >= 0 || scalar_origin_ != POINTER))) sole = SEVERAL;
    for (u32 k = 0; k < effect_->writes; ++k) {
        if (writes[k] >= SCALAR) {
            const u32 n = writes[k] - SCALAR;
            if (t.a.s[n] == t.b.s[n]) continue;
            if (const u32 origin = source(-1, false)) t.scalar_origins[n] = origin;
            continue;
        }
        u64 left = differing(t.a.lanes(writes[k]), t.b.lanes(writes[k])) & scope;
        if (!left) continue;
        u32* to = t.origins.data() + size_t(writes[k]) * LANES;
        if (sole >= 0)  // nothing but one register
            for (u64 lanes = left & masks_[sole]; lanes; lanes &= lanes - 1) {
                const int l = std::countr_zero(lanes);
                const u32 origin = t.origins[size_t(reads[sole]) * LANES + l];
                if (origin) to[l] = origin, left &= ~(1ull << l);
            }
        else if (sole == ADDRESS)
            for (; left; left &= left - 1) to[std::countr_zero(left)] = POINTER;
        for (; left; left &= left - 1) to[std::countr_zero(left)] = source(std::countr_zero(left), false);
    }
}

// Make the twins go the same way. That one has no lane left where the other has some is no reason to part.
void Checker::agree(Twins& t, const Instruction& in, const Effect& effect) {
    const Nature nature = Nature(effect.nature);
    if (t.a.state == t.b.state && (nature == Nature::exec_zero || nature == Nature::exec_set) && ++t.disagreements < MOST_DISAGREEMENTS) {
        const u32 next = in.number + 1;
        if (nature == Nature::exec_zero) t.a.pc = t.b.pc = next;
        else t.a.pc = t.b.pc = t.a.pc == next ? t.b.pc : t.a.pc;
        return;
    }
    u32 origin = nature == Nature::exec_zero || nature == Nature::exec_set ? t.scalar_origins[EXEC] : scalar_origin_;
    if (origin == 0) origin = record(Cause::unset_register, 0, 0, 0);
    shadow_.reach(origin, Reach::branch, in.number);
    if (exec_a_ != exec_b_) t.b.set_pair(EXEC, t.a.exec());
    t.b.pc = t.a.pc, t.b.state = t.a.state;
}

void Checker::step(CheckedGroup& group, Twins& t) {
    group_ = &group, now_ = &t;
    const std::vector<Instruction>& list = launch_.program.instructions;
    Wave &a = t.a, &b = t.b;
    const u64 began = total;
    set_denormals(a.s[MODE] & DENORMALS_32);
    while (a.state == State::running) {
        if (a.pc >= list.size()) {
            a.state = b.state = State::ended;
            break;
        }
        const Instruction& in = list[a.pc];
        in_ = &in, effect_ = effects_ + in.number;
        b.pc = ++a.pc;
        ++executed[in.number], ++total, ++t.done;
        if (t.quiet_version != version_) t.quiet_version = version_, t.quiet = t.done;
        lanes[in.number] += std::popcount(a.exec());
        launch_.instructions.store(total, std::memory_order_relaxed);
        count_ = cursor_ = 0, mine_[0] = mine_[1] = asked_ = NOBODY;
        if (loaded_any_) std::memset(loaded_, 0, sizeof loaded_), loaded_any_ = 0;
        look(t);
        const Nature nature = Nature(effect_->nature);
        in.run(a, in);
        if (nature == Nature::matrix && !any_) {
            const u16* writes = registers_ + effect_->first + effect_->reads;
            for (u32 k = 0; k < effect_->writes; ++k) std::memcpy(b.lanes(writes[k]), a.lanes(writes[k]), LANES * 4);
            continue;
        }
        in.run(b, in);
        if (count_) finish();
        settle(t);
        if (a.pc != b.pc || a.state != b.state) agree(t, in, *effect_);
        if (nature == Nature::release) release();
        else if (nature == Nature::acquire) t.clock.acquire();
        else if (nature == Nature::barrier) t.barrier = in.number;
        if (a.state == State::yielded || (a.pc <= in.number && t.done - t.quiet > PATIENCE))
            if (notice(t) || total - began > SLICE) a.state = b.state = State::yielded;
    }
    if (a.state == State::ended) ++version_;
}

}  // namespace machine
