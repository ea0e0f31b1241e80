// Rows of packed instructions (VOP3P): two 16-bit or two 32-bit operations per lane.
#include "lanes.h"

namespace machine {

// Sources of operands 1 and following, as they lie in their registers.
static const u32* raw(Wave& wave, const Instruction& in, int k, u32* room) {
    const Operand& op = in.operand[k];
    if (op.kind == Kind::vector) return wave.lanes(op.index);
    if (op.kind == Kind::constant) return op.lanes;
    broadcast(room, wave.s[op.index]);
    if (op.registers > 1) broadcast(room + LANES, wave.s[op.index + 1]);
    return room;
}

// Half of a word as a T, negated where `neg` says so.
template <class T> static T half(u32 word, bool high, bool neg = false) {
    u16 x = u16(high ? word >> 16 : word);
    if constexpr (std::is_same_v<T, f16>) x ^= neg ? 0x8000 : 0;
    return std::bit_cast<T>(x);
}

template <class F, class T, int N> static void halves(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[3][2 * LANES], out[LANES];
    const u32* s[3] = {};
    for (int k = 0; k < N; ++k) s[k] = raw(wave, in, 1 + k, room[k]);
    bool at[3][2], neg[3][2];
    for (int k = 0; k < N; ++k)
        at[k][0] = in.op_sel >> k & 1, at[k][1] = in.op_sel_hi >> k & 1, neg[k][0] = in.neg_lo >> k & 1, neg[k][1] = in.neg_hi >> k & 1;
    for (int l = 0; l < LANES; ++l) {
        u32 word = 0;
        for (int h = 0; h < 2; ++h) {
            auto x = [&](int k) { return half<T>(s[k][l], at[k][h], neg[k][h]); };
            const auto value = [&] {
                if constexpr (N == 2) return F{}(x(0), x(1));
                else return F{}(x(0), x(1), x(2));
            }();
            if constexpr (std::is_same_v<T, f16>) word |= u32(bits(finished(wave, value, in))) << 16 * h;
            else word |= u32(u16(limited<T>(value, in.flags & CLAMP))) << 16 * h;
        }
        out[l] = word;
    }
    blend(wave.lanes(in.operand[0].index), out, wave.exec());
}
template <class T, int N, class F> static void P(const std::string& name, F) {
    H(name, {Type::packed16, Type::packed16, Type::packed16, Type::packed16}, halves<F, T, N>);
}

template <class F, int N> static void doubles(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[3][2 * LANES], out[2][LANES];
    const u32* s[3] = {};
    for (int k = 0; k < N; ++k) s[k] = raw(wave, in, 1 + k, room[k]);
    for (int h = 0; h < 2; ++h) {
        const u8 select = h ? in.op_sel_hi : in.op_sel, neg = h ? in.neg_hi : in.neg_lo;
        for (int l = 0; l < LANES; ++l) {
            auto x = [&](int k) { return as_f32(s[k][(select >> k & 1) * LANES + l] ^ ((neg >> k & 1) ? 0x80000000u : 0)); };
            if constexpr (N == 2) out[h][l] = bits(finished(wave, F{}(x(0), x(1)), in));
            else out[h][l] = bits(finished(wave, F{}(x(0), x(1), x(2)), in));
        }
    }
    u32* to = wave.lanes(in.operand[0].index);
    blend(to, out[0], wave.exec());
    blend(to + LANES, out[1], wave.exec());
}
template <int N, class F> static void P32(const std::string& name, F) {
    H(name, {Type::packed32, Type::packed32, Type::packed32, Type::packed32}, doubles<F, N>);
}
// The low result is a half of the first source, the high one of the second.
static void move_pair(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[2][2 * LANES], out[2][LANES];
    const u32 *a = raw(wave, in, 1, room[0]), *b = raw(wave, in, 2, room[1]);
    std::memcpy(out[0], a + (in.op_sel & 1) * LANES, sizeof out[0]);
    std::memcpy(out[1], b + (in.op_sel >> 1 & 1) * LANES, sizeof out[1]);
    u32* to = wave.lanes(in.operand[0].index);
    blend(to, out[0], wave.exec());
    blend(to + LANES, out[1], wave.exec());
}

// a * b + c, each source fp32, or half of a register in fp16 where op_sel_hi says so. `PART`: -1 fp32, 0 low, 1 high half.
template <int PART> static void mixed(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[3][2 * LANES], out[LANES];
    const u32* s[3];
    for (int k = 0; k < 3; ++k) s[k] = raw(wave, in, 1 + k, room[k]);
    u32* to = wave.lanes(in.operand[0].index);
    auto value = [&](int k, int l) {
        f32 x = in.op_sel_hi >> k & 1 ? f32(half<f16>(s[k][l], in.op_sel >> k & 1, false)) : as_f32(s[k][l]);
        if (in.operand[1 + k].modifiers & ABS) x = std::fabs(x);
        return in.operand[1 + k].modifiers & NEG ? -x : x;
    };
    for (int l = 0; l < LANES; ++l) {
        const f32 sum = finished(wave, __builtin_fmaf(value(0, l), value(1, l), value(2, l)), in);
        if (PART < 0) out[l] = bits(sum);
        else out[l] = (to[l] & (PART ? 0xffffu : 0xffff0000u)) | u32(bits(f16(sum))) << 16 * PART;
    }
    blend(to, out, wave.exec());
}

template <int BITS, bool SIGNED> static void dot_integers(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[3][2 * LANES], out[LANES];
    const u32 *a = raw(wave, in, 1, room[0]), *b = raw(wave, in, 2, room[1]), *c = raw(wave, in, 3, room[2]);
    auto part = [](u32 word, int n) {
        const u32 x = word << (32 - BITS * (n + 1));
        return SIGNED ? i64(i32(x) >> (32 - BITS)) : i64(x >> (32 - BITS));
    };
    for (int l = 0; l < LANES; ++l) {
        i64 sum = SIGNED ? i64(i32(c[l])) : i64(c[l]);
        for (int n = 0; n < 32 / BITS; ++n) sum += part(a[l], n) * part(b[l], n);
        if (in.flags & CLAMP)
            sum = SIGNED ? std::clamp<i64>(sum, std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max()) : std::min<i64>(sum, 0xffffffffll);
        out[l] = u32(sum);
    }
    blend(wave.lanes(in.operand[0].index), out, wave.exec());
}
// fp16 products are exact in fp32; the device's order of the sum is that of the ISA document: addend, low, high.
struct Bf16 {};
template <class T> static f32 widened(u32 word, bool high) {
    const u16 x = u16(high ? word >> 16 : word);
    if constexpr (std::is_same_v<T, f16>) return f32(as_f16(x));
    else return from_bf16(x);
}
template <class T> static f32 dot(u32 a, u32 b, f32 c) {
    const f32 low = c + widened<T>(a, false) * widened<T>(b, false);
    return low + widened<T>(a, true) * widened<T>(b, true);
}
template <int BITS> static i32 signed_dot(u32 a, u32 b, i32 c) {
    u32 sum = u32(c);
    for (int at = 0; at < 32; at += BITS) sum += u32((i32(a << (32 - BITS - at)) >> (32 - BITS)) * (i32(b << (32 - BITS - at)) >> (32 - BITS)));
    return i32(sum);
}
template <class T> static void dot_halves(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[3][2 * LANES], out[LANES];
    const u32 *a = raw(wave, in, 1, room[0]), *b = raw(wave, in, 2, room[1]), *c = raw(wave, in, 3, room[2]);
    for (int l = 0; l < LANES; ++l) {
        auto x = [&](u32 word, int k) {
            const u16 low = bits(half<f16>(word, in.op_sel >> k & 1, in.neg_lo >> k & 1));
            return u32(low) | u32(bits(half<f16>(word, in.op_sel_hi >> k & 1, in.neg_hi >> k & 1))) << 16;
        };
        out[l] = bits(finished(wave, dot<T>(x(a[l], 0), x(b[l], 1), in.neg_lo & 4 ? -as_f32(c[l]) : as_f32(c[l])), in));
    }
    blend(wave.lanes(in.operand[0].index), out, wave.exec());
}
// The forms of VOP2 have the addend in their destination. Constants are pairs of halves to those that multiply halves, and
// words to those that multiply integers.
template <class D, class F> static void DOT_ONTO(const char* name, F) {
    constexpr Type source = std::is_same_v<D, i32> ? Type::u32 : Type::packed16;
    rows().push_back({name, onto<F, D, u32, u32>, {type_of<D>(), source, source}});
}

static const bool there = [] {
    P<f16, 2>("v_pk_add_f16", [](f16 a, f16 b) { return f16(a + b); });
    P<f16, 2>("v_pk_mul_f16", [](f16 a, f16 b) { return f16(a * b); });
    P<f16, 2>("v_pk_min_f16", [](f16 a, f16 b) { return smaller(a, b); });
    P<f16, 2>("v_pk_max_f16", [](f16 a, f16 b) { return larger(a, b); });
    P<f16, 3>("v_pk_fma_f16", [](f16 a, f16 b, f16 c) { return fused(a, b, c); });
    P<u16, 2>("v_pk_add_u16", [](i64 a, i64 b) { return a + b; });
    P<u16, 2>("v_pk_sub_u16", [](i64 a, i64 b) { return a - b; });
    P<i16, 2>("v_pk_add_i16", [](i64 a, i64 b) { return a + b; });
    P<i16, 2>("v_pk_sub_i16", [](i64 a, i64 b) { return a - b; });
    P<u16, 2>("v_pk_mul_lo_u16", [](i64 a, i64 b) { return i64(u16(a * b)); });
    P<u16, 3>("v_pk_mad_u16", [](i64 a, i64 b, i64 c) { return a * b + c; });
    P<i16, 3>("v_pk_mad_i16", [](i64 a, i64 b, i64 c) { return a * b + c; });
    P<u16, 2>("v_pk_min_u16", [](u16 a, u16 b) { return std::min(a, b); });
    P<u16, 2>("v_pk_max_u16", [](u16 a, u16 b) { return std::max(a, b); });
    P<i16, 2>("v_pk_min_i16", [](i16 a, i16 b) { return std::min(a, b); });
    P<i16, 2>("v_pk_max_i16", [](i16 a, i16 b) { return std::max(a, b); });
    P<u16, 2>("v_pk_lshlrev_b16", [](u16 a, u16 b) { return u16(b << (a & 15)); });
    P<u16, 2>("v_pk_lshrrev_b16", [](u16 a, u16 b) { return u16(b >> (a & 15)); });
    P<i16, 2>("v_pk_ashrrev_i16", [](i16 a, i16 b) { return i16(b >> (a & 15)); });
    P<f16, 3>("v_pk_minimum3_f16", [](f16 a, f16 b, f16 c) { return a != a || b != b || c != c ? QUIET_NAN<f16> : smaller(smaller(a, b), c); });
    P<f16, 3>("v_pk_maximum3_f16", [](f16 a, f16 b, f16 c) { return a != a || b != b || c != c ? QUIET_NAN<f16> : larger(larger(a, b), c); });
    P32<2>("v_pk_add_f32", [](f32 a, f32 b) { return a + b; });
    P32<2>("v_pk_mul_f32", [](f32 a, f32 b) { return a * b; });
    P32<3>("v_pk_fma_f32", [](f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); });
    H("v_pk_mov_b32", {Type::packed32, Type::packed32, Type::packed32}, move_pair);
    const std::initializer_list<Type> mix = {Type::f32, Type::f32, Type::f32, Type::f32};
    H("v_fma_mix_f32", mix, mixed<-1>), H("v_fma_mixlo_f16", mix, mixed<0>), H("v_fma_mixhi_f16", mix, mixed<1>);
    const std::initializer_list<Type> words = {Type::u32, Type::u32, Type::u32, Type::u32};
    H("v_dot4_i32_i8", words, dot_integers<8, true>), H("v_dot4_u32_u8", words, dot_integers<8, false>);
    H("v_dot8_i32_i4", words, dot_integers<4, true>), H("v_dot8_u32_u4", words, dot_integers<4, false>);
    H("v_dot2_i32_i16", words, dot_integers<16, true>), H("v_dot2_u32_u16", words, dot_integers<16, false>);
    const std::initializer_list<Type> halves_ = {Type::f32, Type::packed16, Type::packed16, Type::f32};
    H("v_dot2_f32_f16", halves_, dot_halves<f16>), H("v_dot2_f32_bf16", halves_, dot_halves<Bf16>);
    DOT_ONTO<f32>("v_dot2c_f32_bf16", [](u32 a, u32 b, f32 c) { return dot<Bf16>(a, b, c); });
    DOT_ONTO<u32>("v_pk_fmac_f16", [](u32 a, u32 b, u32 c) {
        auto one = [&](bool high) { return u32(bits(fused(half<f16>(a, high), half<f16>(b, high), half<f16>(c, high)))); };
        return one(false) | one(true) << 16;
    });
    DOT_ONTO<f32>("v_dot2c_f32_f16", [](u32 a, u32 b, f32 c) { return dot<f16>(a, b, c); });
    DOT_ONTO<i32>("v_dot2c_i32_i16", [](u32 a, u32 b, i32 c) { return signed_dot<16>(a, b, c); });
    DOT_ONTO<i32>("v_dot4c_i32_i8", [](u32 a, u32 b, i32 c) { return signed_dot<8>(a, b, c); });
    DOT_ONTO<i32>("v_dot8c_i32_i4", [](u32 a, u32 b, i32 c) { return signed_dot<4>(a, b, c); });
    return true;
}();

}  // namespace machine
