// Rows of vector instructions on integers and bits.
#include "lanes.h"

namespace machine {

static i32 low24(i32 x) { return i32(u32(x) << 8) >> 8; }
static u32 leading(u32 x) { return x ? u32(std::countl_zero(x)) : ~0u; }
static u32 trailing(u32 x) { return x ? u32(std::countr_zero(x)) : ~0u; }
static u32 reversed(u32 x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}
// Without branches, so that all lanes are computed at once.
static u32 chosen_byte(u32 high, u32 low, u32 selector) {
    const u32 own = (selector & 4 ? high : low) >> 8 * (selector & 3) & 255;
    const u32 sign = ((selector & 2 ? high : low) >> (16 * (selector & 1) + 15) & 1) * 255;
    return selector < 8 ? own : selector < 12 ? sign : selector == 12 ? 0 : 255;
}
// Sum of the distances between parts of words; `MASKED`: but not where the second part is 0.
template <int BITS, bool MASKED = false> static u32 distance(u32 a, u32 b) {
    u32 sum = 0;
    for (int at = 0; at < 32; at += BITS) {
        const i32 x = a >> at & ((1u << BITS) - 1), y = b >> at & ((1u << BITS) - 1);
        if (!MASKED || y) sum += u32(x > y ? x - y : y - x);
    }
    return sum;
}
static u32 average8(u32 a, u32 b, u32 c) {
    u32 result = 0;
    for (int at = 0; at < 32; at += 8) result |= ((a >> at & 255) + (b >> at & 255) + (c >> at & 1)) >> 1 << at;
    return result;
}
static u32 saturated8(i16 x) { return u32(std::clamp<i16>(x, 0, 255)); }
template <class T> static T middle(T a, T b, T c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

template <class T> static void three(const std::string& type) {
    auto name = [&](const char* what) { return what + type; };
    V<T, T, T, T>(name("v_min3_"), [](T a, T b, T c) { return std::min(std::min(a, b), c); });
    V<T, T, T, T>(name("v_max3_"), [](T a, T b, T c) { return std::max(std::max(a, b), c); });
    V<T, T, T, T>(name("v_med3_"), [](T a, T b, T c) { return middle(a, b, c); });
}

static void arithmetic() {
    SATURATING<ZEROED, u32, u32, u32>("v_add_u32", [](i64 a, i64 b) { return a + b; });
    SATURATING<ZEROED, u32, u32, u32>("v_sub_u32", [](i64 a, i64 b) { return a - b; });
    SATURATING<ZEROED, u32, u32, u32>("v_subrev_u32", [](i64 a, i64 b) { return b - a; });
    SATURATING<ZEROED, i32, i32, i32>("v_add_i32", [](i64 a, i64 b) { return a + b; });
    SATURATING<ZEROED, i32, i32, i32>("v_sub_i32", [](i64 a, i64 b) { return a - b; });
    V<u32, u32, u32>("v_mul_lo_u32", [](u32 a, u32 b) { return a * b; });
    V<u32, u32, u32>("v_mul_hi_u32", [](u32 a, u32 b) { return u32(u64(a) * b >> 32); });
    V<i32, i32, i32>("v_mul_hi_i32", [](i32 a, i32 b) { return i32(i64(a) * b >> 32); });
    V<u32, u32, u32>("v_mul_u32_u24", [](u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); });
    V<u32, u32, u32>("v_mul_hi_u32_u24", [](u32 a, u32 b) { return u32(u64(a & 0xffffff) * (b & 0xffffff) >> 32); });
    V<i32, i32, i32>("v_mul_i32_i24", [](i32 a, i32 b) { return i32(u32(low24(a)) * u32(low24(b))); });
    V<i32, i32, i32>("v_mul_hi_i32_i24", [](i32 a, i32 b) { return i32(i64(low24(a)) * low24(b) >> 32); });
    SATURATING<ZEROED, u32, u32, u32, u32>("v_mad_u32_u24", [](i64 a, i64 b, i64 c) { return (a & 0xffffff) * (b & 0xffffff) + c; });
    SATURATING<ZEROED, i32, i32, i32, i32>("v_mad_i32_i24", [](i64 a, i64 b, i64 c) { return i64(low24(i32(a))) * low24(i32(b)) + c; });
    SATURATING<ZEROED, u32, u16, u16, u32>("v_mad_u32_u16", [](i64 a, i64 b, i64 c) { return a * b + c; });
    SATURATING<ZEROED, i32, i16, i16, i32>("v_mad_i32_i16", [](i64 a, i64 b, i64 c) { return a * b + c; });
    V<u32, u32, u32, u32>("v_add3_u32", [](u32 a, u32 b, u32 c) { return a + b + c; });
    V<u32, u32, u32, u32>("v_lshl_add_u32", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; });
    V<u32, u32, u32, u32>("v_add_lshl_u32", [](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); });
    V<u32, u32, u32, u32>("v_xad_u32", [](u32 a, u32 b, u32 c) { return (a ^ b) + c; });
    V<u64, u64, u32, u64>("v_lshl_add_u64", [](u64 a, u32 b, u64 c) { return (a << ((b & 7) > 4 ? 0 : b & 7)) + c; });
    V<u32, u32, u32>("v_min_u32", [](u32 a, u32 b) { return std::min(a, b); });
    V<u32, u32, u32>("v_max_u32", [](u32 a, u32 b) { return std::max(a, b); });
    V<i32, i32, i32>("v_min_i32", [](i32 a, i32 b) { return std::min(a, b); });
    V<i32, i32, i32>("v_max_i32", [](i32 a, i32 b) { return std::max(a, b); });
    three<u32>("u32"), three<i32>("i32"), three<u16>("u16"), three<i16>("i16");
    V<u32, u32, u32, u32>("v_sad_u32", [](u32 a, u32 b, u32 c) { return (a > b ? a - b : b - a) + c; });
    V<u32, u32, u32, u32>("v_sad_u8", [](u32 a, u32 b, u32 c) { return distance<8>(a, b) + c; });
    V<u32, u32, u32, u32>("v_sad_hi_u8", [](u32 a, u32 b, u32 c) { return (distance<8>(a, b) << 16) + c; });
    V<u32, u32, u32, u32>("v_sad_u16", [](u32 a, u32 b, u32 c) { return distance<16>(a, b) + c; });
    V<u32, u32, u32, u32>("v_msad_u8", [](u32 a, u32 b, u32 c) { return distance<8, true>(a, b) + c; });
    V<u32, u32, u32, u32>("v_lerp_u8", [](u32 a, u32 b, u32 c) { return average8(a, b, c); });
    V<u16, u32>("v_sat_pk_u8_i16", [](u32 a) { return u16(saturated8(i16(a)) | saturated8(i16(a >> 16)) << 8); });
}

static void words() {
    SATURATING<ZEROED, u16, u16, u16>("v_add_u16", [](i64 a, i64 b) { return a + b; });
    SATURATING<ZEROED, u16, u16, u16>("v_sub_u16", [](i64 a, i64 b) { return a - b; });
    SATURATING<ZEROED, u16, u16, u16>("v_subrev_u16", [](i64 a, i64 b) { return b - a; });
    V<u16, u16, u16>("v_mul_lo_u16", [](u16 a, u16 b) { return u16(u32(a) * b); });
    V<u16, u16, u16>("v_lshlrev_b16", [](u16 a, u16 b) { return u16(b << (a & 15)); });
    V<u16, u16, u16>("v_lshrrev_b16", [](u16 a, u16 b) { return u16(b >> (a & 15)); });
    V<i16, i16, i16>("v_ashrrev_i16", [](i16 a, i16 b) { return i16(b >> (a & 15)); });
    V<u16, u16, u16>("v_min_u16", [](u16 a, u16 b) { return std::min(a, b); });
    V<u16, u16, u16>("v_max_u16", [](u16 a, u16 b) { return std::max(a, b); });
    V<i16, i16, i16>("v_min_i16", [](i16 a, i16 b) { return std::min(a, b); });
    V<i16, i16, i16>("v_max_i16", [](i16 a, i16 b) { return std::max(a, b); });
    SATURATING<ZEROED, i16, i16, i16>("v_add_i16", [](i64 a, i64 b) { return a + b; });
    SATURATING<ZEROED, i16, i16, i16>("v_sub_i16", [](i64 a, i64 b) { return a - b; });
    SATURATING<ZEROED, u16, u16, u16, u16>("v_mad_legacy_u16", [](i64 a, i64 b, i64 c) { return a * b + c; });
    SATURATING<ZEROED, i16, i16, i16, i16>("v_mad_legacy_i16", [](i64 a, i64 b, i64 c) { return a * b + c; });
    SATURATING<KEPT, u16, u16, u16, u16>("v_mad_u16", [](i64 a, i64 b, i64 c) { return a * b + c; });
    SATURATING<KEPT, i16, i16, i16, i16>("v_mad_i16", [](i64 a, i64 b, i64 c) { return a * b + c; });
    V<u32, f16, f16>("v_pack_b32_f16", [](f16 a, f16 b) { return u32(bits(a)) | u32(bits(b)) << 16; });
}

static void bits_() {
    V<u32, u32>("v_mov_b32", [](u32 a) { return a; });
    V<u64, u64>("v_mov_b64", [](u64 a) { return a; });
    V<u32, u32>("v_accvgpr_read_b32", [](u32 a) { return a; });
    V<u32, u32>("v_accvgpr_write_b32", [](u32 a) { return a; });
    V<u32, u32>("v_accvgpr_mov_b32", [](u32 a) { return a; });
    V<u32, u32>("v_not_b32", [](u32 a) { return ~a; });
    V<u32, u32, u32>("v_and_b32", [](u32 a, u32 b) { return a & b; });
    V<u32, u32, u32>("v_or_b32", [](u32 a, u32 b) { return a | b; });
    V<u32, u32, u32>("v_xor_b32", [](u32 a, u32 b) { return a ^ b; });
    V<u32, u32, u32>("v_xnor_b32", [](u32 a, u32 b) { return ~(a ^ b); });
    V<u32, u32, u32>("v_lshlrev_b32", [](u32 a, u32 b) { return b << (a & 31); });
    V<u32, u32, u32>("v_lshrrev_b32", [](u32 a, u32 b) { return b >> (a & 31); });
    V<i32, i32, i32>("v_ashrrev_i32", [](i32 a, i32 b) { return b >> (a & 31); });
    V<u64, u32, u64>("v_lshlrev_b64", [](u32 a, u64 b) { return b << (a & 63); });
    V<u64, u32, u64>("v_lshrrev_b64", [](u32 a, u64 b) { return b >> (a & 63); });
    V<i64, u32, i64>("v_ashrrev_i64", [](u32 a, i64 b) { return b >> (a & 63); });
    V<u32, u32, u32, u32>("v_bfe_u32", [](u32 a, u32 b, u32 c) { return a >> (b & 31) & ((1u << (c & 31)) - 1); });
    V<i32, i32, u32, u32>("v_bfe_i32", [](i32 a, u32 b, u32 c) {
        const u32 width = c & 31, part = u32(a >> (b & 31)) & ((1u << width) - 1);
        return width ? i32(part << (32 - width)) >> (32 - width) : 0;
    });
    V<u32, u32, u32, u32>("v_bfi_b32", [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); });
    V<u32, u32, u32>("v_bfm_b32", [](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); });
    V<u32, u32>("v_bfrev_b32", [](u32 a) { return reversed(a); });
    V<u32, u32>("v_ffbh_u32", [](u32 a) { return leading(a); });
    V<u32, u32>("v_ffbl_b32", [](u32 a) { return trailing(a); });
    V<u32, i32>("v_ffbh_i32", [](i32 a) { return leading(u32(a < 0 ? ~a : a)) == ~0u ? ~0u : leading(u32(a < 0 ? ~a : a)); });
    V<u32, u32, u32>("v_bcnt_u32_b32", [](u32 a, u32 b) { return u32(std::popcount(a)) + b; });
    V<u32, u32, u32, u32>("v_and_or_b32", [](u32 a, u32 b, u32 c) { return (a & b) | c; });
    V<u32, u32, u32, u32>("v_lshl_or_b32", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; });
    V<u32, u32, u32, u32>("v_or3_b32", [](u32 a, u32 b, u32 c) { return a | b | c; });
    V<u32, u32, u32, u32>("v_alignbit_b32", [](u32 a, u32 b, u32 c) { return u32((u64(a) << 32 | b) >> (c & 31)); });
    V<u32, u32, u32, u32>("v_alignbyte_b32", [](u32 a, u32 b, u32 c) { return u32((u64(a) << 32 | b) >> 8 * (c & 3)); });
    V<u32, u32, u32, u32>("v_perm_b32", [](u32 a, u32 b, u32 c) {
        const u32 lower = chosen_byte(a, b, c & 255) | chosen_byte(a, b, c >> 8 & 255) << 8;
        return lower | chosen_byte(a, b, c >> 16 & 255) << 16 | chosen_byte(a, b, c >> 24) << 24;
    });
}

// D, carry = A + B (+ carry): with a mask of lanes as the carry out, and perhaps as the carry in.
template <class F, bool IN> static void carrying(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[2][2 * LANES], out[LANES];
    alignas(64) u8 flags[LANES];
    const u32* a = fetch<u32>(wave, in, 2, 0, room[0]);
    const u32* b = fetch<u32>(wave, in, 3, 1, room[1]);
    const u64 carry = IN ? mask_of(wave, in.operand[4]) : 0;
    for (int l = 0; l < LANES; ++l) {
        const u64 sum = F{}(u64(a[l]), u64(b[l]), carry >> l & 1);
        out[l] = u32(sum), flags[l] = sum >> 32 & 1;
    }
    if (in.flags & CLAMP)  // a sum that overflows becomes the largest number, a difference 0
        for (int l = 0; l < LANES; ++l) out[l] = !flags[l] ? out[l] : F{}(1, 1, 0) ? ~0u : 0;
    const u64 mask = packed(flags) & writable(wave, in);
    commit<u32>(wave, in, out);
    set_mask(wave, in.operand[1], mask);
}
template <bool IN, class F> static void CARRY(const std::string& name, F) {
    H(name, {Type::u32, Type::u64, Type::u32, Type::u32, Type::u64}, carrying<F, IN>);
}

// D(64), carry = A * B + C.
template <class T, class W> static void multiply_wide(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[3][2 * LANES], out[2 * LANES];
    alignas(64) u8 flags[LANES];
    const u32* a = fetch<T>(wave, in, 2, 0, room[0]);
    const u32* b = fetch<T>(wave, in, 3, 1, room[1]);
    const u32* c = fetch<W>(wave, in, 4, 2, room[2]);
    for (int l = 0; l < LANES; ++l) {
        const W product = W(get<T>(a, l)) * get<T>(b, l), addend = get<W>(c, l);
        W sum;
        flags[l] = __builtin_add_overflow(product, addend, &sum);
        put<W>(out, l, sum);
    }
    const u64 mask = packed(flags) & writable(wave, in);
    commit<W>(wave, in, out);
    set_mask(wave, in.operand[1], mask);
}

static void select_lanes(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[2][2 * LANES], out[LANES];
    const u32* a = fetch<u32>(wave, in, 1, 0, room[0]);
    const u32* b = fetch<u32>(wave, in, 2, 1, room[1]);
    const u64 mask = mask_of(wave, in.operand[3]);
    std::memcpy(out, a, sizeof out);
    blend(out, b, mask);
    commit<u32>(wave, in, out);
}

// Population count of the lanes below, of half of a mask, plus an addend.
template <int HALF> static void count_below(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[2][2 * LANES], out[LANES];
    const u32* a = fetch<u32>(wave, in, 1, 0, room[0]);
    const u32* b = fetch<u32>(wave, in, 2, 1, room[1]);
    for (int l = 0; l < LANES; ++l) {
        const u64 below = (1ull << l) - 1;
        out[l] = u32(std::popcount(a[l] & u32(below >> 32 * HALF))) + b[l];
    }
    commit<u32>(wave, in, out);
}

static void read_first_lane(Wave& wave, const Instruction& in) {
    const u64 exec = wave.exec();
    const int lane = exec ? std::countr_zero(exec) : 0;
    const Operand& from = in.operand[1];
    wave.s[in.operand[0].index] = from.kind == Kind::vector ? wave.lanes(from.index)[lane] : scalar<u32>(wave, from);
}
static void read_lane(Wave& wave, const Instruction& in) {
    wave.s[in.operand[0].index] = wave.lanes(in.operand[1].index)[scalar<u32>(wave, in.operand[2]) & 63];
}
static void write_lane(Wave& wave, const Instruction& in) {
    wave.lanes(in.operand[0].index)[scalar<u32>(wave, in.operand[2]) & 63] = scalar<u32>(wave, in.operand[1]);
}
static void swap(Wave& wave, const Instruction& in) {
    u32 *a = wave.lanes(in.operand[0].index), *b = wave.lanes(in.operand[1].index);
    alignas(64) u32 kept[LANES];
    std::memcpy(kept, a, sizeof kept);
    blend(a, b, wave.exec());
    blend(b, kept, wave.exec());
}

static const bool there = [] {
    arithmetic(), words(), bits_();
    CARRY<false>("v_add_co_u32", [](u64 a, u64 b, u64) { return a + b; });
    CARRY<false>("v_sub_co_u32", [](u64 a, u64 b, u64) { return a - b; });
    CARRY<false>("v_subrev_co_u32", [](u64 a, u64 b, u64) { return b - a; });
    CARRY<true>("v_addc_co_u32", [](u64 a, u64 b, u64 c) { return a + b + c; });
    CARRY<true>("v_subb_co_u32", [](u64 a, u64 b, u64 c) { return a - b - c; });
    CARRY<true>("v_subbrev_co_u32", [](u64 a, u64 b, u64 c) { return b - a - c; });
    H("v_mad_u64_u32", {Type::u64, Type::u64, Type::u32, Type::u32, Type::u64}, multiply_wide<u32, u64>);
    H("v_mad_i64_i32", {Type::i64, Type::u64, Type::i32, Type::i32, Type::i64}, multiply_wide<i32, i64>);
    H("v_cndmask_b32", {Type::u32, Type::u32, Type::u32, Type::u64}, select_lanes);
    H("v_mbcnt_lo_u32_b32", {Type::u32, Type::u32, Type::u32}, count_below<0>);
    H("v_mbcnt_hi_u32_b32", {Type::u32, Type::u32, Type::u32}, count_below<1>);
    H("v_readfirstlane_b32", {Type::u32, Type::u32}, read_first_lane);
    H("v_readlane_b32", {Type::u32, Type::u32, Type::u32}, read_lane);
    H("v_writelane_b32", {Type::u32, Type::u32, Type::u32}, write_lane);
    H("v_swap_b32", {Type::u32, Type::u32}, swap);
    H("v_nop", {}, [](Wave&, const Instruction&) {});
    return true;
}();

}  // namespace machine
