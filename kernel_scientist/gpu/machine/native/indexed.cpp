// Registers whose numbers depend on M0, and the barrier of all workgroups of a cooperative launch.
//
// Source: AMD, "AMD Instinct MI300 Instruction Set Architecture", "VGPR Indexing" and `DS_GWS_BARRIER`.
#include "lanes.h"

namespace machine {

// Bits of the mode that `s_set_gpr_idx_on` puts into M0: which operands are indexed.
enum Indexed : u32 { SOURCE_0 = 1, DESTINATION = 8 };
constexpr u32 NUMBER = 0xff, AT = 12, SCALARS_OF_PROGRAMS = 102;

void indexed(Wave& wave, const Instruction& in) {
    if (!(wave.s[MODE] & INDEXING)) return in.plain(wave, in);
    Instruction moved = in;
    const u32 by = wave.s[M0] & NUMBER, which = wave.s[M0] >> AT;
    for (int k = 0; k < in.operands; ++k) {
        Operand& op = moved.operand[k];
        if (op.kind != Kind::vector || !(which & (k ? SOURCE_0 << (k - 1) : DESTINATION))) continue;
        const bool there = op.index + by + op.registers <= wave.group->launch.order.registers;
        if (!there && k == 0) return;  // a register that is not allocated is not written, and reads as v0
        op.index = there ? op.index + i32(by) : 0;
    }
    in.plain(wave, moved);
}

template <class T, bool SOURCE> static void move_relative(Wave& w, const Instruction& in) {
    Operand moved = in.operand[SOURCE];
    moved.index += i32(w.s[M0]);
    if (moved.index < 0 || moved.index + sizeof(T) / 4 > SCALARS_OF_PROGRAMS) {
        w.group->launch.report(w, in, Fault::trap, 0, u64(moved.index));
        w.state = State::ended;
    } else if (SOURCE) set_scalar<T>(w, in.operand[0], scalar<T>(w, moved));
    else set_scalar<T>(w, moved, scalar<T>(w, in.operand[1]));
}

// One wave of each workgroup comes here; the register tells how many others do. Who waits comes again in each turn.
static void wait_for_all(Wave& w, const Instruction& in) {
    Launch& launch = w.group->launch;
    if (!launch.order.cooperative) {
        launch.report(w, in, Fault::trap, 0, 0);
        w.state = State::ended;
        return;
    }
    std::lock_guard lock(launch.guard);
    if (w.arrived && launch.round != w.round) {
        w.arrived = false;
        return;
    }
    if (!w.arrived) {
        const u32 others = w.lanes(in.operand[0].index)[std::countr_zero(w.exec() | 1ull << 63)];
        if (launch.arrived == others) {
            launch.arrived = 0, ++launch.round;
            return;
        }
        ++launch.arrived, w.arrived = true, w.round = launch.round;
    }
    --w.pc, w.state = State::yielded;
}

static const bool there = [] {
    H("s_set_gpr_idx_on", {Type::u32, Type::u32}, [](Wave& w, const Instruction& in) {
        w.s[M0] = (w.s[M0] & ~(NUMBER | 15u << AT)) | (scalar<u32>(w, in.operand[0]) & NUMBER) | u32(in.operand[1].bits & 15) << AT;
        w.s[MODE] |= INDEXING;
    });
    H("s_set_gpr_idx_off", {}, [](Wave& w, const Instruction&) { w.s[MODE] &= ~INDEXING; });
    H("s_set_gpr_idx_idx", {Type::u32}, [](Wave& w, const Instruction& in) {
        w.s[M0] = (w.s[M0] & ~NUMBER) | (scalar<u32>(w, in.operand[0]) & NUMBER);
    });
    H("s_set_gpr_idx_mode", {Type::u32}, [](Wave& w, const Instruction& in) {
        w.s[M0] = (w.s[M0] & ~(15u << AT)) | u32(in.operand[0].bits & 15) << AT;
    });
    H("s_movrels_b32", {Type::u32, Type::u32}, move_relative<u32, true>), H("s_movrels_b64", {Type::u64, Type::u64}, move_relative<u64, true>);
    H("s_movreld_b32", {Type::u32, Type::u32}, move_relative<u32, false>), H("s_movreld_b64", {Type::u64, Type::u64}, move_relative<u64, false>);
    H("ds_gws_barrier", {Type::u32}, wait_for_all);
    return true;
}();

}  // namespace machine
