// Typed operations on 64 lanes: fetching sources with their modifiers, writing results where the lanes are active, and
// the builders of the rows of the table.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "denormals.h"
#include "machine.h"
#include "numbers.h"

namespace machine {

template <class T> constexpr bool WIDE = sizeof(T) == 8;

template <class T> constexpr Type type_of() {
    if constexpr (std::is_same_v<T, u32>) return Type::u32;
    if constexpr (std::is_same_v<T, i32>) return Type::i32;
    if constexpr (std::is_same_v<T, f32>) return Type::f32;
    if constexpr (std::is_same_v<T, f16>) return Type::f16;
    if constexpr (std::is_same_v<T, i16>) return Type::i16;
    if constexpr (std::is_same_v<T, u16>) return Type::u16;
    if constexpr (std::is_same_v<T, u64>) return Type::u64;
    if constexpr (std::is_same_v<T, i64>) return Type::i64;
    return Type::f64;
}

template <class T> inline T get(const u32* p, int lane) {
    if constexpr (WIDE<T>) return std::bit_cast<T>(u64(p[lane]) | u64(p[LANES + lane]) << 32);
    else if constexpr (sizeof(T) == 2) return std::bit_cast<T>(u16(p[lane]));
    else return std::bit_cast<T>(p[lane]);
}
template <class T> inline void put(u32* p, int lane, T value) {
    if constexpr (WIDE<T>) {
        const u64 x = std::bit_cast<u64>(value);
        p[lane] = u32(x), p[LANES + lane] = u32(x >> 32);
    } else if constexpr (sizeof(T) == 2) p[lane] = std::bit_cast<u16>(value);
    else p[lane] = std::bit_cast<u32>(value);
}

inline void broadcast(u32* to, u32 value) {
    for (int l = 0; l < LANES; ++l) to[l] = value;
}

// Copy lanes where the mask is set.
inline void blend(u32* to, const u32* from, u64 mask) {
    if (mask == ALL) {
        std::memcpy(to, from, LANES * 4);
        return;
    }
    for (int half = 0; half < 2; ++half) {
        const u32 m = u32(mask >> 32 * half);
        for (int l = 0; l < 32; ++l) to[32 * half + l] = (m >> l & 1) ? from[32 * half + l] : to[32 * half + l];
    }
}

// Pack 64 bytes of 0 or 1 into a mask.
inline u64 packed(const u8* flags) {
    u64 mask = 0;
    for (int b = 0; b < 8; ++b) {
        u64 x;
        std::memcpy(&x, flags + 8 * b, 8);
        mask |= (x * 0x0102040810204080ull >> 56) << 8 * b;
    }
    return mask;
}

// Run an instruction with M0 added to the numbers of its vector registers, as the mode says.
void indexed(Wave& wave, const Instruction& in);
// Lanes of the source as DPP permutes them; sets the wave's mask of lanes that may be written.
void permuted(Wave& wave, const Instruction& in, const u32* from, u32* to);
// Select a byte or a word of each lane (SDWA). `selection`: 0 to 3 bytes, 4 and 5 words, 6 everything.
void selected(const u32* from, u32* to, u8 selection, bool sign);
// Write selected parts of the destination (SDWA).
void write_selected(Wave& wave, const Instruction& in, u32* to, const u32* from, u64 mask);

// Apply what is not plain about source k: DPP, SDWA, op_sel, and the modifiers |x| and -x of the type.
template <class T> const u32* modified(Wave& wave, const Instruction& in, int k, int source, const u32* from, u32* to) {
    if ((in.flags & DPP) && source == 0) {
        if constexpr (WIDE<T>) permuted(wave, in, from + LANES, to + LANES);
        permuted(wave, in, from, to), from = to;
    }
    if ((in.flags & SDWA) && source < 2) selected(from, to, in.sdwa[2 + source], in.operand[k].modifiers & SEXT), from = to;
    if constexpr (sizeof(T) == 2) {
        if ((in.flags & OP_SEL) && (in.op_sel >> source & 1)) {
            for (int l = 0; l < LANES; ++l) to[l] = from[l] >> 16;
            from = to;
        }
    }
    const u8 change = in.operand[k].modifiers & (NEG | ABS);
    if (change || from != to) {
        constexpr u32 sign = sizeof(T) == 2 ? 0x8000u : 0x80000000u;
        const u32 keep = change & ABS ? ~sign : ~0u, flip = change & NEG ? sign : 0;
        if constexpr (WIDE<T>) {
            for (int l = 0; l < LANES; ++l) to[l] = from[l];
            for (int l = 0; l < LANES; ++l) to[LANES + l] = (from[LANES + l] & keep) ^ flip;
        } else {
            for (int l = 0; l < LANES; ++l) to[l] = (from[l] & keep) ^ flip;
        }
    }
    return to;
}

// Lanes of operand k as a T; `source` counts the sources from 0. `room` has space for 128 words.
template <class T> inline const u32* fetch(Wave& wave, const Instruction& in, int k, int source, u32* room) {
    const Operand& op = in.operand[k];
    const u32* from = room;
    if (op.kind == Kind::vector) from = wave.lanes(op.index);
    else if (op.kind == Kind::constant) from = op.lanes;
    else {
        broadcast(room, wave.s[op.index]);
        if constexpr (WIDE<T>) broadcast(room + LANES, wave.s[op.index + 1]);
    }
    return op.plain ? from : modified<T>(wave, in, k, source, from, room);
}

inline u64 writable(const Wave& wave, const Instruction& in) {
    return in.flags & DPP ? wave.exec() & wave.dpp_mask : wave.exec();
}

// Output modifiers (OMOD) have no effect where the mode is IEEE, as HIP's and Triton's are, or denormal results are kept.
inline bool scales(const Wave& wave, const Instruction& in) {
    return in.omod && !(wave.s[MODE] & (IEEE | DENORMALS_32));
}

template <class T> inline T finished(const Wave& wave, T value, const Instruction& in) {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, f16>) {
        if (scales(wave, in)) value = value * T(in.omod == 1 ? 2.0f : in.omod == 2 ? 4.0f : 0.5f);
        if (in.flags & CLAMP) value = value > T(0) ? (value < T(1) ? value : T(1)) : T(0);
    }
    return value;
}

// What becomes of the upper half of the register of a 16-bit result.
enum Upper : bool { ZEROED, KEPT };

// Write a result of type T to operand 0.
template <class T, Upper UPPER = ZEROED> inline void commit(Wave& wave, const Instruction& in, u32* out) {
    if (in.omod || (in.flags & CLAMP))
        for (int l = 0; l < LANES; ++l) put<T>(out, l, finished(wave, get<T>(out, l), in));
    u32* to = wave.lanes(in.operand[0].index);
    const u64 mask = writable(wave, in);
    if (in.flags & SDWA) return write_selected(wave, in, to, out, mask);
    if constexpr (sizeof(T) == 2) {
        if ((in.flags & OP_SEL) && (in.op_sel & 8)) {
            for (int l = 0; l < LANES; ++l) out[l] = out[l] << 16 | (to[l] & 0xffff);
        } else if (UPPER == KEPT) {
            for (int l = 0; l < LANES; ++l) out[l] |= to[l] & 0xffff0000u;
        }
    }
    blend(to, out, mask);
    if constexpr (WIDE<T>) blend(to + LANES, out + LANES, mask);
}

template <class F, class D, class... S, size_t... K>
inline void apply_lanes(Wave& wave, const Instruction& in, u32* out, int first, std::index_sequence<K...>) {
    alignas(64) u32 room[sizeof...(S)][2 * LANES];
    const u32* source[] = {fetch<S>(wave, in, first + int(K), int(K), room[K])...};
    for (int l = 0; l < LANES; ++l) put<D>(out, l, F{}(get<S>(source[K], l)...));
}

struct Unchanged {};
// What an operation on T runs with: the mode says what becomes of denormal numbers of fp32 only.
template <class... T>
using Mode64 = std::conditional_t<(std::is_same_v<T, f64> || ...) && !(std::is_same_v<T, f32> || ...), Kept, Unchanged>;

template <class F, Upper UPPER, class D, class... S> void vector(Wave& wave, const Instruction& in) {
    alignas(64) u32 out[2 * LANES];
    [[maybe_unused]] const Mode64<D, S...> mode;
    apply_lanes<F, D, S...>(wave, in, out, 1, std::make_index_sequence<sizeof...(S)>{});
    commit<D, UPPER>(wave, in, out);
}

// A row for D = F(S...), lane by lane.
template <class D, class... S, class F> void V(const std::string& name, F) {
    rows().push_back({name, vector<F, ZEROED, D, S...>, {type_of<D>(), type_of<S>()...}});
}
// The same for a 16-bit D that leaves the upper half of its register.
template <class D, class... S, class F> void KEEPING(const std::string& name, F) {
    rows().push_back({name, vector<F, KEPT, D, S...>, {type_of<D>(), type_of<S>()...}});
}

// An exact result as an I: the end of the range that it exceeds, or its lower bits.
template <class I> inline I limited(i64 exact, bool saturate) {
    constexpr i64 least = std::numeric_limits<I>::min(), most = std::numeric_limits<I>::max();
    return I(saturate ? std::clamp(exact, least, most) : exact);
}
template <class F, Upper UPPER, class D, class... S, size_t... K>
inline void apply_exactly(Wave& wave, const Instruction& in, std::index_sequence<K...>) {
    alignas(64) u32 room[sizeof...(S)][2 * LANES], out[LANES];
    const u32* source[] = {fetch<S>(wave, in, 1 + int(K), int(K), room[K])...};
    const bool saturate = in.flags & CLAMP;
    for (int l = 0; l < LANES; ++l) put<D>(out, l, limited<D>(F{}(i64(get<S>(source[K], l))...), saturate));
    commit<D, UPPER>(wave, in, out);
}
template <class F, Upper UPPER, class D, class... S> void exactly(Wave& wave, const Instruction& in) {
    apply_exactly<F, UPPER, D, S...>(wave, in, std::make_index_sequence<sizeof...(S)>{});
}
// A row for integers that `clamp` saturates: F computes the exact result from 64-bit numbers.
template <Upper UPPER, class D, class... S, class F> void SATURATING(const std::string& name, F) {
    rows().push_back({name, exactly<F, UPPER, D, S...>, {type_of<D>(), type_of<S>()...}});
}

// As `vector`, with the former destination as the last argument.
template <class F, class D, class... S, size_t... K>
inline void apply_onto(Wave& wave, const Instruction& in, u32* out, std::index_sequence<K...>) {
    alignas(64) u32 room[sizeof...(S)][2 * LANES];
    const u32* source[] = {fetch<S>(wave, in, 1 + int(K), int(K), room[K])...};
    const u32* before = wave.lanes(in.operand[0].index);
    for (int l = 0; l < LANES; ++l) put<D>(out, l, F{}(get<S>(source[K], l)..., get<D>(before, l)));
}
template <class F, class D, class... S> void onto(Wave& wave, const Instruction& in) {
    alignas(64) u32 out[2 * LANES];
    [[maybe_unused]] const Mode64<D, S...> mode;
    apply_onto<F, D, S...>(wave, in, out, std::make_index_sequence<sizeof...(S)>{});
    commit<D>(wave, in, out);
}
template <class D, class... S, class F> void ONTO(const std::string& name, F) {
    rows().push_back({name, onto<F, D, S...>, {type_of<D>(), type_of<S>()...}});
}

// Write a mask of lanes to a pair of scalar registers.
inline void set_mask(Wave& wave, const Operand& op, u64 mask) { wave.set_pair(op.index, mask); }
inline u64 mask_of(const Wave& wave, const Operand& op) {
    return op.kind == Kind::constant ? op.bits : wave.pair(op.index);
}

template <class F, class S0, class S1, bool X> void compare(Wave& wave, const Instruction& in) {
    alignas(64) u32 room[2][2 * LANES];
    const u32* a = fetch<S0>(wave, in, 1, 0, room[0]);
    const u32* b = fetch<S1>(wave, in, 2, 1, room[1]);
    alignas(64) u8 flags[LANES];
    [[maybe_unused]] const Mode64<S0, S1> mode;
    for (int l = 0; l < LANES; ++l) flags[l] = F{}(get<S0>(a, l), get<S1>(b, l));
    const u64 mask = packed(flags) & writable(wave, in);
    set_mask(wave, in.operand[0], mask);
    if constexpr (X) wave.set_pair(EXEC, mask);
}
template <class S0, class S1, class F> void C(const std::string& name, F) {
    rows().push_back({"v_cmp_" + name, compare<F, S0, S1, false>, {Type::u64, type_of<S0>(), type_of<S1>()}});
    rows().push_back({"v_cmpx_" + name, compare<F, S0, S1, true>, {Type::u64, type_of<S0>(), type_of<S1>()}});
}

// Scalar sources and destinations.
template <class T> inline T scalar(const Wave& wave, const Operand& op) {
    if (op.kind == Kind::constant) {
        if constexpr (WIDE<T>) return std::bit_cast<T>(op.bits);
        else return std::bit_cast<T>(u32(op.bits));
    }
    if constexpr (WIDE<T>) return std::bit_cast<T>(wave.pair(op.index));
    else return std::bit_cast<T>(wave.s[op.index]);
}
template <class T> inline void set_scalar(Wave& wave, const Operand& op, T value) {
    if constexpr (WIDE<T>) wave.set_pair(op.index, std::bit_cast<u64>(value));
    else wave.s[op.index] = std::bit_cast<u32>(value);
}

// A row with a handler of its own.
inline void H(const std::string& name, std::initializer_list<Type> types, Handler run) { rows().push_back({name, run, types}); }

}  // namespace machine
