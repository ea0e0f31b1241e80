// Rows of scalar instructions that jump, wait, load, or concern the state of a wave.
#include "counter.h"
#include "denormals.h"
#include "lanes.h"
#include "memory.h"

namespace machine {

static void jump(Wave& wave, const Instruction& in) { wave.pc = u32(in.operand[in.operands - 1].index); }
template <class F> static void jump_if(Wave& wave, const Instruction& in) {
    if (F{}(wave)) jump(wave, in);
}
template <class F> static void J(const std::string& name, F) { H(name, {Type::u32}, jump_if<F>); }
static void jump_to(Wave& wave, const Instruction& in, u64 address) {
    const u64 place = (address - CODE) / 4;
    if (address < CODE || address % 4 || place >= wave.group->launch.program.instructions.size()) {
        wave.group->launch.report(wave, in, Fault::jump, 0, address);
        wave.state = State::ended;
    } else wave.pc = u32(place);
}
static u64 here(const Wave& wave) { return CODE + 4ull * wave.pc; }

static void refuse(Wave& w, const Instruction& in) {
    w.group->launch.report(w, in, Fault::refused, 0, 0);
    w.state = State::ended;
}

// A field of a hardware register, as the instructions encode it.
struct Field {
    u32 reg, at, mask;
    explicit Field(const Operand& op) : reg(op.bits & 63), at(op.bits >> 6 & 31) {
        const u32 width = (op.bits >> 11 & 31) + 1;
        mask = width == 32 ? ~0u : (1u << width) - 1;
    }
};
constexpr u32 HW_MODE = 1, HW_XCC_ID = 20;
// The chiplet (XCC) that a workgroup runs on: they are dealt out in turns. Registers but these two read 0.
static void read_hardware(Wave& w, const Instruction& in) {
    constexpr u32 chiplets = 8;
    const Field field(in.operand[1]);
    const u32 value = field.reg == HW_XCC_ID ? w.group->number % chiplets : field.reg == HW_MODE ? w.s[MODE] : 0;
    w.s[in.operand[0].index] = value >> field.at & field.mask;
}
// Only MODE has an effect: denormals, and saturation of 8-bit results. Rounding but to nearest is refused.
static void write_hardware(Wave& w, const Instruction& in) {
    const Field field(in.operand[0]);
    if (field.reg != HW_MODE) return;
    u32& mode = w.s[MODE];
    mode = (mode & ~(field.mask << field.at)) | (scalar<u32>(w, in.operand[1]) & field.mask) << field.at;
    if (mode & ROUNDING) return refuse(w, in);
    set_denormals(mode & DENORMALS_32);
}

static void control() {
    J("s_branch", [](Wave&) { return true; });
    J("s_cbranch_scc0", [](Wave& w) { return !w.s[SCC]; });
    J("s_cbranch_scc1", [](Wave& w) { return bool(w.s[SCC]); });
    J("s_cbranch_vccz", [](Wave& w) { return !w.pair(VCC); });
    J("s_cbranch_vccnz", [](Wave& w) { return w.pair(VCC) != 0; });
    J("s_cbranch_execz", [](Wave& w) { return !w.exec(); });
    J("s_cbranch_execnz", [](Wave& w) { return w.exec() != 0; });
    H("s_getpc_b64", {Type::u64}, [](Wave& w, const Instruction& in) { set_scalar<u64>(w, in.operand[0], here(w)); });
    H("s_setpc_b64", {Type::u64}, [](Wave& w, const Instruction& in) { jump_to(w, in, scalar<u64>(w, in.operand[0])); });
    H("s_swappc_b64", {Type::u64, Type::u64}, [](Wave& w, const Instruction& in) {
        const u64 to = scalar<u64>(w, in.operand[1]);
        set_scalar<u64>(w, in.operand[0], here(w));
        jump_to(w, in, to);
    });
    H("s_call_b64", {Type::u64, Type::u32}, [](Wave& w, const Instruction& in) {
        set_scalar<u64>(w, in.operand[0], here(w));
        jump(w, in);
    });
    H("s_endpgm", {}, [](Wave& w, const Instruction&) { w.state = State::ended; });
    H("s_barrier", {}, [](Wave& w, const Instruction&) { w.state = State::at_barrier; });
    // A wave that sleeps waits for others: let them run.
    H("s_sleep", {Type::u32}, [](Wave& w, const Instruction&) { w.state = State::yielded; });
    H("s_trap", {Type::u32}, [](Wave& w, const Instruction& in) {
        w.group->launch.report(w, in, Fault::trap, 0, 0);
        w.state = State::ended;
    });
    H("refused", {}, refuse);
    for (const char* name : {"s_nop", "s_waitcnt", "s_setprio", "s_icache_inv", "s_dcache_inv", "s_dcache_wb",
                             "s_dcache_inv_vol", "s_dcache_wb_vol", "s_sethalt", "s_ttracedata", "s_incperflevel", "s_decperflevel",
                             "buffer_wbl2", "buffer_inv", "s_wakeup"})
        H(name, {Type::u32}, [](Wave&, const Instruction&) {});
    auto clock = [](Wave& w, const Instruction& in) { set_scalar<u64>(w, in.operand[0], w.group->launch.instructions.load()); };
    H("s_memtime", {Type::u64}, clock), H("s_memrealtime", {Type::u64}, clock);
    H("s_getreg_b32", {Type::u32, Type::u32}, read_hardware);
    H("s_setreg_b32", {Type::u32, Type::u32}, write_hardware), H("s_setreg_imm32_b32", {Type::u32, Type::u32}, write_hardware);
}

// Loads of 1 to 16 words; operands: destination, base, offset (a constant or a register).
template <int N> static void load(Wave& wave, const Instruction& in) {
    const Operand& by = in.operand[2];
    const u64 address = ((wave.pair(in.operand[1].index) + u64(i64(in.offset))) + (by.kind == Kind::constant ? u64(i64(by.bits)) : by.kind == Kind::scalar ? wave.s[by.index] : 0)) & ~3ull;
    if (wave.counter) wave.counter->memory(in, &address, 1, 4 * N);
    if (const u8* from = place(wave, in, 0, address, 4 * N, false)) std::memcpy(wave.s + in.operand[0].index, from, 4 * N);
    else std::memset(wave.s + in.operand[0].index, 0, 4 * N);
}
template <int N> static void load_buffer(Wave& wave, const Instruction& in) {
    const Descriptor d = descriptor(wave, in.operand[1]);
    const Operand& by = in.operand[2];
    const u64 offset = (u64(i64(in.offset)) + (by.kind == Kind::constant ? by.bits : by.kind == Kind::scalar ? wave.s[by.index] : 0)) & ~3ull;
    const u64 first = d.base + offset;
    if (wave.counter) wave.counter->memory(in, &first, 1, 4 * N);
    for (int n = 0; n < N; ++n) {
        const u8* from = offset + 4 * n + 4 <= d.bytes ? place(wave, in, 0, d.base + offset + 4 * n, 4, false) : nullptr;
        u32 word = 0;
        if (from) std::memcpy(&word, from, 4);
        wave.s[in.operand[0].index + n] = word;
    }
}

static const bool there = [] {
    control();
    const std::initializer_list<Type> three = {Type::u32, Type::u64, Type::i64};
    H("s_load_dword", three, load<1>), H("s_load_dwordx2", three, load<2>), H("s_load_dwordx4", three, load<4>);
    H("s_load_dwordx8", three, load<8>), H("s_load_dwordx16", three, load<16>);
    H("s_buffer_load_dword", three, load_buffer<1>), H("s_buffer_load_dwordx2", three, load_buffer<2>);
    H("s_buffer_load_dwordx4", three, load_buffer<4>), H("s_buffer_load_dwordx8", three, load_buffer<8>);
    H("s_buffer_load_dwordx16", three, load_buffer<16>);
    return true;
}();

}  // namespace machine
