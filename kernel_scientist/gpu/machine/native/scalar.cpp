// Rows of scalar instructions that compute: arithmetic, bits, comparisons, masks of lanes.
#include "lanes.h"

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

static const bool there = [] {
    arithmetic(), fields(), masks();
    logic<u32>("b32"), logic<u64>("b64");
    comparisons<i32>("i32"), comparisons<u32>("u32"), short_comparisons<i32>("i32"), short_comparisons<u32>("u32");
    SC_<u64, u64>("s_cmp_eq_u64", [](u64 a, u64 b) { return a == b; });
    SC_<u64, u64>("s_cmp_lg_u64", [](u64 a, u64 b) { return a != b; });
    return true;
}();

}  // namespace machine
