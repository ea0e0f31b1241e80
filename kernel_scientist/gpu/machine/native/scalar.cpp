// Rows of scalar instructions: arithmetic, masks, control flow, loads.
#include "lanes.h"
#include "memory.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace machine {

// What sets SCC: nothing, a result that is not zero, or the operation itself.
template <class F, class D, class... S, size_t... K>
static void apply_scalar(Wave& wave, const Instruction& in, std::index_sequence<K...>) {
    u32& scc = wave.s[SCC];
    set_scalar<D>(wave, in.operand[0], F{}(scc, scalar<S>(wave, in.operand[1 + K])...));
}
template <class F, class D, class... S> static void scalar_row(Wave& wave, const Instruction& in) {
    apply_scalar<F, D, S...>(wave, in, std::make_index_sequence<sizeof...(S)>{});
}
template <class D, class... S, class F> static void S_(const std::string& name, F) {
    rows().push_back({name, scalar_row<F, D, S...>, {type_of<D>(), type_of<S>()...}});
}
// With SCC = the result is not zero.
template <class F, class D, class... S> static void scalar_bits(Wave& wave, const Instruction& in) {
    [&]<size_t... K>(std::index_sequence<K...>) {
        const D result = F{}(scalar<S>(wave, in.operand[1 + K])...);
        set_scalar<D>(wave, in.operand[0], result);
        wave.s[SCC] = result != 0;
    }(std::make_index_sequence<sizeof...(S)>{});
}
template <class D, class... S, class F> static void B(const std::string& name, F) {
    rows().push_back({name, scalar_bits<F, D, S...>, {type_of<D>(), type_of<S>()...}});
}
template <class F, class A, class B_> static void scalar_compare(Wave& wave, const Instruction& in) {
    wave.s[SCC] = F{}(scalar<A>(wave, in.operand[0]), scalar<B_>(wave, in.operand[1]));
}
template <class A, class B_, class F> static void SC_(const std::string& name, F) {
    rows().push_back({name, scalar_compare<F, A, B_>, {type_of<A>(), type_of<B_>()}});
}

template <class T> static void comparisons(const std::string& type) {
    SC_<T, T>("s_cmp_eq_" + type, [](T a, T b) { return a == b; });
    SC_<T, T>("s_cmp_lg_" + type, [](T a, T b) { return a != b; });
    SC_<T, T>("s_cmp_gt_" + type, [](T a, T b) { return a > b; });
    SC_<T, T>("s_cmp_ge_" + type, [](T a, T b) { return a >= b; });
    SC_<T, T>("s_cmp_lt_" + type, [](T a, T b) { return a < b; });
    SC_<T, T>("s_cmp_le_" + type, [](T a, T b) { return a <= b; });
}
// The 16-bit constant is sign-extended for i32 and zero-extended for u32.
template <class T> static T short_(u32 k) { return std::is_signed_v<T> ? T(i16(k)) : T(u16(k)); }
template <class T> static void short_comparisons(const std::string& type) {
    SC_<T, u32>("s_cmpk_eq_" + type, [](T a, u32 k) { return a == short_<T>(k); });
    SC_<T, u32>("s_cmpk_lg_" + type, [](T a, u32 k) { return a != short_<T>(k); });
    SC_<T, u32>("s_cmpk_gt_" + type, [](T a, u32 k) { return a > short_<T>(k); });
    SC_<T, u32>("s_cmpk_ge_" + type, [](T a, u32 k) { return a >= short_<T>(k); });
    SC_<T, u32>("s_cmpk_lt_" + type, [](T a, u32 k) { return a < short_<T>(k); });
    SC_<T, u32>("s_cmpk_le_" + type, [](T a, u32 k) { return a <= short_<T>(k); });
}

static void arithmetic() {
    S_<u32, u32, u32>("s_add_u32", [](u32& scc, u32 a, u32 b) { scc = u32(a + b) < a; return a + b; });
    S_<u32, u32, u32>("s_sub_u32", [](u32& scc, u32 a, u32 b) { scc = b > a; return a - b; });
    S_<u32, u32, u32>("s_addc_u32", [](u32& scc, u32 a, u32 b) { const u64 x = u64(a) + b + scc; scc = x >> 32 & 1; return u32(x); });
    S_<u32, u32, u32>("s_subb_u32", [](u32& scc, u32 a, u32 b) { const u64 x = u64(a) - b - scc; scc = x >> 32 & 1; return u32(x); });
    S_<i32, i32, i32>("s_add_i32", [](u32& scc, i32 a, i32 b) { i32 x; scc = __builtin_add_overflow(a, b, &x); return x; });
    S_<i32, i32, i32>("s_sub_i32", [](u32& scc, i32 a, i32 b) { i32 x; scc = __builtin_sub_overflow(a, b, &x); return x; });
    S_<u32, u32, u32>("s_mul_i32", [](u32&, u32 a, u32 b) { return a * b; });
    S_<u32, u32, u32>("s_mul_hi_u32", [](u32&, u32 a, u32 b) { return u32(u64(a) * b >> 32); });
    S_<i32, i32, i32>("s_mul_hi_i32", [](u32&, i32 a, i32 b) { return i32(i64(a) * b >> 32); });
    S_<u32, u32, u32>("s_min_u32", [](u32& scc, u32 a, u32 b) { scc = a < b; return std::min(a, b); });
    S_<u32, u32, u32>("s_max_u32", [](u32& scc, u32 a, u32 b) { scc = a >= b; return std::max(a, b); });
    S_<i32, i32, i32>("s_min_i32", [](u32& scc, i32 a, i32 b) { scc = a < b; return std::min(a, b); });
    S_<i32, i32, i32>("s_max_i32", [](u32& scc, i32 a, i32 b) { scc = a >= b; return std::max(a, b); });
    S_<i32, i32>("s_abs_i32", [](u32& scc, i32 a) { scc = a != 0; return a < 0 ? i32(-u32(a)) : a; });
    S_<i32, i32, i32>("s_absdiff_i32", [](u32& scc, i32 a, i32 b) { const u32 d = u32(a) - u32(b); const i32 x = i32(d) < 0 ? i32(-d) : i32(d); scc = x != 0; return x; });
    S_<u32, u32, u32>("s_cselect_b32", [](u32& scc, u32 a, u32 b) { return scc ? a : b; });
    S_<u64, u64, u64>("s_cselect_b64", [](u32& scc, u64 a, u64 b) { return scc ? a : b; });
    S_<u32, u32, u32>("s_lshl1_add_u32", [](u32& scc, u32 a, u32 b) { const u64 x = (u64(a) << 1) + b; scc = x >> 32 != 0; return u32(x); });
    S_<u32, u32, u32>("s_lshl2_add_u32", [](u32& scc, u32 a, u32 b) { const u64 x = (u64(a) << 2) + b; scc = x >> 32 != 0; return u32(x); });
    S_<u32, u32, u32>("s_lshl3_add_u32", [](u32& scc, u32 a, u32 b) { const u64 x = (u64(a) << 3) + b; scc = x >> 32 != 0; return u32(x); });
    S_<u32, u32, u32>("s_lshl4_add_u32", [](u32& scc, u32 a, u32 b) { const u64 x = (u64(a) << 4) + b; scc = x >> 32 != 0; return u32(x); });
}

static u64 quads(u64 x, bool whole) {
    u64 result = 0;
    for (int q = 0; q < 16; ++q) {
        const u64 any = x >> 4 * q & 15 ? 1 : 0;
        result |= whole ? (any ? 15ull << 4 * q : 0) : any << q;
    }
    return result;
}
static u64 reversed(u64 x, int bits) {
    u64 result = 0;
    for (int b = 0; b < bits; ++b) result |= (x >> b & 1) << (bits - 1 - b);
    return result;
}

template <class T> static void logic(const char* b) {
    auto name = [&](const char* what) { return std::string(what) + b; };
    constexpr u32 most = 8 * sizeof(T) - 1;
    B<T, T, T>(name("s_and_"), [](T a, T x) { return T(a & x); });
    B<T, T, T>(name("s_or_"), [](T a, T x) { return T(a | x); });
    B<T, T, T>(name("s_xor_"), [](T a, T x) { return T(a ^ x); });
    B<T, T, T>(name("s_andn2_"), [](T a, T x) { return T(a & ~x); });
    B<T, T, T>(name("s_orn2_"), [](T a, T x) { return T(a | ~x); });
    B<T, T, T>(name("s_nand_"), [](T a, T x) { return T(~(a & x)); });
    B<T, T, T>(name("s_nor_"), [](T a, T x) { return T(~(a | x)); });
    B<T, T, T>(name("s_xnor_"), [](T a, T x) { return T(~(a ^ x)); });
    B<T, T>(name("s_not_"), [](T a) { return T(~a); });
    B<T, T>(name("s_wqm_"), [](T a) { return T(quads(a, true)); });
    B<T, T>(name("s_quadmask_"), [](T a) { return T(quads(a, false)); });
    B<T, T, u32>(name("s_lshl_"), [](T a, u32 n) { return T(a << (n & most)); });
    B<T, T, u32>(name("s_lshr_"), [](T a, u32 n) { return T(a >> (n & most)); });
    S_<T, T>(name("s_mov_"), [](u32&, T a) { return a; });
    S_<T, T>(name("s_brev_"), [](u32&, T a) { return T(reversed(a, most + 1)); });
    S_<T, u32, u32>(name("s_bfm_"), [](u32&, u32 a, u32 n) { return T(((T(1) << (a & most)) - 1) << (n & most)); });
    S_<u32, T>(name("s_ff1_i32_"), [](u32&, T a) { return a ? u32(std::countr_zero(a)) : ~0u; });
    S_<u32, T>(name("s_ff0_i32_"), [](u32&, T a) { return ~a ? u32(std::countr_one(a)) : ~0u; });
    S_<u32, T>(name("s_flbit_i32_"), [](u32&, T a) { return a ? u32(std::countl_zero(a)) : ~0u; });
    B<u32, T>(name("s_bcnt1_i32_"), [](T a) { return u32(std::popcount(a)); });
    B<u32, T>(name("s_bcnt0_i32_"), [](T a) { return u32(std::popcount(T(~a))); });
    H(name("s_cmov_"), {type_of<T>(), type_of<T>()}, [](Wave& w, const Instruction& in) {
        if (w.s[SCC]) set_scalar<T>(w, in.operand[0], scalar<T>(w, in.operand[1]));
    });
    H(name("s_bitset1_"), {type_of<T>(), Type::u32}, [](Wave& w, const Instruction& in) {
        set_scalar<T>(w, in.operand[0], T(scalar<T>(w, in.operand[0]) | T(1) << (scalar<u32>(w, in.operand[1]) & most)));
    });
    H(name("s_bitset0_"), {type_of<T>(), Type::u32}, [](Wave& w, const Instruction& in) {
        set_scalar<T>(w, in.operand[0], T(scalar<T>(w, in.operand[0]) & ~(T(1) << (scalar<u32>(w, in.operand[1]) & most))));
    });
    SC_<T, u32>(std::string("s_bitcmp1_") + b, [](T a, u32 n) { return u32(a >> (n & most) & 1); });
    SC_<T, u32>(std::string("s_bitcmp0_") + b, [](T a, u32 n) { return u32(!(a >> (n & most) & 1)); });
}

static void fields() {
    B<i32, i32, u32>("s_ashr_i32", [](i32 a, u32 n) { return a >> (n & 31); });
    B<i64, i64, u32>("s_ashr_i64", [](i64 a, u32 n) { return a >> (n & 63); });
    B<u32, u32, u32>("s_bfe_u32", [](u32 a, u32 n) { const u32 w = std::min(n >> 16 & 127, 32u); return w == 0 ? 0u : u32((a >> (n & 31)) & u32(w == 32 ? ~0u : (1u << w) - 1)); });
    B<i32, i32, u32>("s_bfe_i32", [](i32 a, u32 n) {
        const u32 w = std::min(n >> 16 & 127, 32u), at = n & 31;
        if (w == 0) return 0;
        return at + w >= 32 ? a >> at : i32(u32(a) << (32 - at - w)) >> (32 - w);
    });
    B<u64, u64, u32>("s_bfe_u64", [](u64 a, u32 n) { const u32 w = std::min(n >> 16 & 127, 64u); return w == 0 ? u64(0) : (a >> (n & 63)) & (w == 64 ? ~u64(0) : (u64(1) << w) - 1); });
    B<i64, i64, u32>("s_bfe_i64", [](i64 a, u32 n) {
        const u32 w = std::min(n >> 16 & 127, 64u), at = n & 63;
        if (w == 0) return i64(0);
        return at + w >= 64 ? a >> at : i64(u64(a) << (64 - at - w)) >> (64 - w);
    });
    S_<i32, u32>("s_movk_i32", [](u32&, u32 k) { return i32(i16(k)); });
    H("s_addk_i32", {Type::i32, Type::u32}, [](Wave& w, const Instruction& in) {
        i32 x;
        w.s[SCC] = __builtin_add_overflow(i32(w.s[in.operand[0].index]), i32(i16(scalar<u32>(w, in.operand[1]))), &x);
        w.s[in.operand[0].index] = u32(x);
    });
    H("s_mulk_i32", {Type::i32, Type::u32}, [](Wave& w, const Instruction& in) {
        w.s[in.operand[0].index] *= u32(i32(i16(scalar<u32>(w, in.operand[1]))));
    });
    H("s_cmovk_i32", {Type::i32, Type::u32}, [](Wave& w, const Instruction& in) {
        if (w.s[SCC]) w.s[in.operand[0].index] = u32(i32(i16(scalar<u32>(w, in.operand[1]))));
    });
    S_<u64, u32>("s_bitreplicate_b64_b32", [](u32&, u32 a) {
        u64 doubled = 0;
        for (int b = 0; b < 32; ++b) doubled |= u64(a >> b & 1) * 3 << 2 * b;
        return doubled;
    });
    S_<i32, u32>("s_sext_i32_i16", [](u32&, u32 a) { return i32(i16(a)); });
    S_<i32, u32>("s_sext_i32_i8", [](u32&, u32 a) { return i32(i8(a)); });
    S_<u32, i32>("s_flbit_i32", [](u32&, i32 a) { const u32 x = u32(a < 0 ? ~a : a); return x ? u32(std::countl_zero(x)) : ~0u; });
    S_<u32, i64>("s_flbit_i32_i64", [](u32&, i64 a) { const u64 x = u64(a < 0 ? ~a : a); return x ? u32(std::countl_zero(x)) : ~0u; });
    S_<u32, u32, u32>("s_pack_ll_b32_b16", [](u32&, u32 a, u32 b) { return (a & 0xffff) | b << 16; });
    S_<u32, u32, u32>("s_pack_lh_b32_b16", [](u32&, u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); });
    S_<u32, u32, u32>("s_pack_hh_b32_b16", [](u32&, u32 a, u32 b) { return a >> 16 | (b & 0xffff0000); });
}

// D = EXEC, EXEC = F(source, EXEC), SCC = EXEC is not zero.
template <class F> static void save_exec(Wave& wave, const Instruction& in) {
    const u64 source = scalar<u64>(wave, in.operand[1]), before = wave.exec();
    wave.set_pair(EXEC, F{}(source, before));
    set_scalar<u64>(wave, in.operand[0], before);
    wave.s[SCC] = wave.exec() != 0;
}
template <class F> static void SAVE(const std::string& name, F) { H(name, {Type::u64, Type::u64}, save_exec<F>); }
template <class F> static void write_exec(Wave& wave, const Instruction& in) {
    wave.set_pair(EXEC, F{}(scalar<u64>(wave, in.operand[1]), wave.exec()));
    set_scalar<u64>(wave, in.operand[0], wave.exec());
    wave.s[SCC] = wave.exec() != 0;
}

static void masks() {
    SAVE("s_and_saveexec_b64", [](u64 a, u64 e) { return a & e; });
    SAVE("s_or_saveexec_b64", [](u64 a, u64 e) { return a | e; });
    SAVE("s_xor_saveexec_b64", [](u64 a, u64 e) { return a ^ e; });
    SAVE("s_andn2_saveexec_b64", [](u64 a, u64 e) { return a & ~e; });
    SAVE("s_orn2_saveexec_b64", [](u64 a, u64 e) { return a | ~e; });
    SAVE("s_nand_saveexec_b64", [](u64 a, u64 e) { return ~(a & e); });
    SAVE("s_nor_saveexec_b64", [](u64 a, u64 e) { return ~(a | e); });
    SAVE("s_xnor_saveexec_b64", [](u64 a, u64 e) { return ~(a ^ e); });
    SAVE("s_andn1_saveexec_b64", [](u64 a, u64 e) { return ~a & e; });
    SAVE("s_orn1_saveexec_b64", [](u64 a, u64 e) { return ~a | e; });
    auto andn1 = [](u64 a, u64 e) { return ~a & e; };
    auto andn2 = [](u64 a, u64 e) { return a & ~e; };
    H("s_andn1_wrexec_b64", {Type::u64, Type::u64}, write_exec<decltype(andn1)>);
    H("s_andn2_wrexec_b64", {Type::u64, Type::u64}, write_exec<decltype(andn2)>);
}

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
#if defined(__x86_64__)
    _mm_setcsr((_mm_getcsr() & ~0x8040u) | (mode & DENORMALS_32 ? 0 : 0x8040u));
#endif
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
    H("s_trap", {Type::u32}, refuse), H("refused", {}, refuse);
    for (const char* name : {"s_nop", "s_waitcnt", "s_setprio", "s_icache_inv", "s_dcache_inv", "s_dcache_wb",
                             "s_dcache_inv_vol", "s_dcache_wb_vol", "s_sethalt", "s_ttracedata", "s_incperflevel", "s_decperflevel",
                             "buffer_wbl2", "buffer_inv", 
                             "s_wakeup"})
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
    if (const u8* from = place(wave, in, 0, address, 4 * N, false)) std::memcpy(wave.s + in.operand[0].index, from, 4 * N);
    else std::memset(wave.s + in.operand[0].index, 0, 4 * N);
}
template <int N> static void load_buffer(Wave& wave, const Instruction& in) {
    const Descriptor d = descriptor(wave, in.operand[1]);
    const Operand& by = in.operand[2];
    const u64 offset = (u64(i64(in.offset)) + (by.kind == Kind::constant ? by.bits : by.kind == Kind::scalar ? wave.s[by.index] : 0)) & ~3ull;
    for (int n = 0; n < N; ++n) {
        const u8* from = offset + 4 * n + 4 <= d.bytes ? place(wave, in, 0, d.base + offset + 4 * n, 4, false) : nullptr;
        u32 word = 0;
        if (from) std::memcpy(&word, from, 4);
        wave.s[in.operand[0].index + n] = word;
    }
}

static const bool there = [] {
    arithmetic(), fields(), masks(), control();
    logic<u32>("b32"), logic<u64>("b64");
    comparisons<i32>("i32"), comparisons<u32>("u32"), short_comparisons<i32>("i32"), short_comparisons<u32>("u32");
    SC_<u64, u64>("s_cmp_eq_u64", [](u64 a, u64 b) { return a == b; });
    SC_<u64, u64>("s_cmp_lg_u64", [](u64 a, u64 b) { return a != b; });
    const std::initializer_list<Type> three = {Type::u32, Type::u64, Type::i64};
    H("s_load_dword", three, load<1>), H("s_load_dwordx2", three, load<2>), H("s_load_dwordx4", three, load<4>);
    H("s_load_dwordx8", three, load<8>), H("s_load_dwordx16", three, load<16>);
    H("s_buffer_load_dword", three, load_buffer<1>), H("s_buffer_load_dwordx2", three, load_buffer<2>);
    H("s_buffer_load_dwordx4", three, load_buffer<4>), H("s_buffer_load_dwordx8", three, load_buffer<8>);
    H("s_buffer_load_dwordx16", three, load_buffer<16>);
    return true;
}();

}  // namespace machine
