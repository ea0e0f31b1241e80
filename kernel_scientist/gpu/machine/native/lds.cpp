// Rows of instructions on LDS, and of those that move data between lanes through its crossbar.
#include "counter.h"
#include "lanes.h"
#include "memory.h"

namespace machine {

static inline void count(Wave& wave, const Instruction& in, const u32* address, u32 offset, u32 bytes, bool reads) {
    if (wave.counter) wave.counter->lds(wave, in, address, offset, bytes, reads);
}
template <class F> static void each(Wave& wave, F act) {
    const u64 exec = wave.exec();
    if (exec == ALL) {
        for (int l = 0; l < LANES; ++l) act(l);
    } else {
        for (u64 left = exec; left; left &= left - 1) act(std::countr_zero(left));
    }
}

template <int N, Part P> static void read(Wave& wave, const Instruction& in) {
    constexpr u32 bytes = N > 1 ? 4 * N : PART_BYTES<P>;
    alignas(64) u32 address[LANES];
    std::memcpy(address, wave.lanes(in.operand[1].index), sizeof address);
    count(wave, in, address, u32(in.offset), bytes, true);
    u32* to = wave.lanes(in.operand[0].index);
    each(wave, [&](int l) {
        const u8* at = lds_place(wave, in, l, u32(address[l] + u32(in.offset)), bytes, false);
        for (int n = 0; n < N; ++n) to[n * LANES + l] = at ? loaded<P>(at + 4 * n) : 0;
    });
}
// Two places, `STEP` bytes times their offsets away.
template <int N, int STEP> static void read_two(Wave& wave, const Instruction& in) {
    alignas(64) u32 address[LANES];
    std::memcpy(address, wave.lanes(in.operand[1].index), sizeof address);
    for (int k = 0; k < 2; ++k) count(wave, in, address, STEP * u32(k ? in.offset1 : in.offset), 4 * N, true);
    u32* to = wave.lanes(in.operand[0].index);
    each(wave, [&](int l) {
        for (int k = 0; k < 2; ++k) {
            const u8* at = lds_place(wave, in, l, u32(address[l] + STEP * u32(k ? in.offset1 : in.offset)), 4 * N, false);
            for (int n = 0; n < N; ++n) {
                u32 x = 0;
                if (at) std::memcpy(&x, at + 4 * n, 4);
                to[(k * N + n) * LANES + l] = x;
            }
        }
    });
}
template <int N, int WIDTH, bool HIGH> static void write(Wave& wave, const Instruction& in) {
    constexpr u32 bytes = N > 1 ? 4 * N : WIDTH;
    const u32 *address = wave.lanes(in.operand[0].index), *from = wave.lanes(in.operand[1].index);
    count(wave, in, address, u32(in.offset), bytes, false);
    each(wave, [&](int l) {
        u8* at = lds_place(wave, in, l, u32(address[l] + u32(in.offset)), bytes, true);
        if (!at) return;
        if constexpr (N == 1) {
            const u32 x = HIGH ? from[l] >> 16 : from[l];
            std::memcpy(at, &x, WIDTH);
        } else {
            for (int n = 0; n < N; ++n) std::memcpy(at + 4 * n, from + n * LANES + l, 4);
        }
    });
}
template <int N, int STEP> static void write_two(Wave& wave, const Instruction& in) {
    const u32* address = wave.lanes(in.operand[0].index);
    for (int k = 0; k < 2; ++k) count(wave, in, address, STEP * u32(k ? in.offset1 : in.offset), 4 * N, false);
    each(wave, [&](int l) {
        for (int k = 0; k < 2; ++k) {
            const u32* from = wave.lanes(in.operand[1 + k].index);
            u8* at = lds_place(wave, in, l, u32(address[l] + STEP * u32(k ? in.offset1 : in.offset)), 4 * N, true);
            for (int n = 0; at && n < N; ++n) std::memcpy(at + 4 * n, from + n * LANES + l, 4);
        }
    });
}

// Atomic operations; `RTN`: the former value goes to operand 0; `TWO`: there is a second datum. A workgroup's waves run one after another.
template <class T, class F, bool RTN, bool TWO> static void atomic(Wave& wave, const Instruction& in) {
    constexpr int A = RTN ? 1 : 0;
    alignas(64) u32 address[LANES], data[2 * LANES], other[2 * LANES];
    std::memcpy(address, wave.lanes(in.operand[A].index), sizeof address);
    count(wave, in, address, u32(in.offset), sizeof(T), false);
    std::memcpy(data, wave.lanes(in.operand[A + 1].index), sizeof(T) / 4 * LANES * 4);
    if constexpr (TWO) std::memcpy(other, wave.lanes(in.operand[A + 2].index), sizeof(T) / 4 * LANES * 4);
    each(wave, [&](int l) {
        u8* at = lds_place(wave, in, l, u32(address[l] + u32(in.offset)), sizeof(T), true);
        T before{}, after{};
        if (at) std::memcpy(&before, at, sizeof(T));
        if constexpr (TWO) after = F{}(before, get<T>(data, l), get<T>(other, l));
        else after = F{}(before, get<T>(data, l));
        if (at) std::memcpy(at, &after, sizeof(T));
        if constexpr (RTN) put<T>(wave.lanes(in.operand[0].index), l, before);
    });
}
template <class T, bool TWO = false, class F> static void A(const std::string& what, const std::string& type, F) {
    const std::initializer_list<Type> types = {Type::u32, Type::u32, Type::u32, Type::u32};
    if (what != "wrxchg") H("ds_" + what + "_" + type, types, atomic<T, F, false, TWO>);
    H("ds_" + what + "_rtn_" + type, types, atomic<T, F, true, TWO>);
}
template <class T> static void compare_and_store(const std::string& type) {
    A<T, true>("cmpst", type, [](T x, T wanted, T d) { return x == wanted ? d : x; });
}
template <class U, class I> static void atomics(const std::string& bits) {
    const std::string u = "u" + bits, i = "i" + bits, b = "b" + bits;
    A<U>("add", u, [](U x, U d) { return U(x + d); });
    A<U>("sub", u, [](U x, U d) { return U(x - d); });
    A<U>("rsub", u, [](U x, U d) { return U(d - x); });
    A<U>("inc", u, [](U x, U d) { return x >= d ? U(0) : U(x + 1); });
    A<U>("dec", u, [](U x, U d) { return x == 0 || x > d ? d : U(x - 1); });
    A<I>("min", i, [](I x, I d) { return std::min(x, d); });
    A<I>("max", i, [](I x, I d) { return std::max(x, d); });
    A<U>("min", u, [](U x, U d) { return std::min(x, d); });
    A<U>("max", u, [](U x, U d) { return std::max(x, d); });
    A<U>("and", b, [](U x, U d) { return U(x & d); });
    A<U>("or", b, [](U x, U d) { return U(x | d); });
    A<U>("xor", b, [](U x, U d) { return U(x ^ d); });
    A<U, true>("mskor", b, [](U x, U mask, U d) { return U((x & ~mask) | d); });
    compare_and_store<U>(b);
    A<U>("wrxchg", b, [](U, U d) { return d; });
}

// Lane l reads what the lane that its address names holds; lanes that are switched off give 0.
static void bpermute(Wave& wave, const Instruction& in) {
    alignas(64) u32 out[LANES];
    const u32 *address = wave.lanes(in.operand[1].index), *from = wave.lanes(in.operand[2].index);
    const u64 exec = wave.exec();
    for (int l = 0; l < LANES; ++l) {
        const u32 source = (address[l] + u32(in.offset)) >> 2 & 63;
        out[l] = exec >> source & 1 ? from[source] : 0;
    }
    blend(wave.lanes(in.operand[0].index), out, exec);
}
// Lane l writes to the lane that its address names; the last writer wins, lanes that none writes to get 0.
static void permute(Wave& wave, const Instruction& in) {
    alignas(64) u32 out[LANES] = {};
    const u32 *address = wave.lanes(in.operand[1].index), *from = wave.lanes(in.operand[2].index);
    const u64 exec = wave.exec();
    for (u64 left = exec; left; left &= left - 1) {
        const int l = std::countr_zero(left);
        out[(address[l] + u32(in.offset)) >> 2 & 63] = from[l];
    }
    blend(wave.lanes(in.operand[0].index), out, exec);
}
// The lane that `lane` reads. The offset is a pattern: a step of an FFT, a rotation, a permutation of four lanes, or and,
// or and xor masks; all but the third within 32 lanes.
static u32 swizzled(u32 pattern, u32 lane) {
    const u32 place = lane & 31, half = lane & 32, mask = pattern & 31;
    if (pattern >= 0xe000) {
        u32 reversed = 0;
        for (int b = 0; b < 5; ++b) reversed |= (place >> b & 1) << (4 - b);
        return half | (reversed >> std::popcount(mask)) | (place & mask);
    }
    if (pattern >= 0xc000) {
        const u32 by = pattern >> 5 & 31, moved = pattern >> 10 & 1 ? place - by : place + by;
        return half | (place & mask) | (moved & ~mask & 31);
    }
    if (pattern >> 15) return (lane & ~3u) | (pattern >> 2 * (lane & 3) & 3);
    return half | (((place & mask) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31));
}
static void swizzle(Wave& wave, const Instruction& in) {
    alignas(64) u32 out[LANES];
    const u32* from = wave.lanes(in.operand[1].index);
    const u32 pattern = u32(in.offset);
    const u64 exec = wave.exec();
    for (int l = 0; l < LANES; ++l) {
        const u32 source = swizzled(pattern, u32(l));
        out[l] = exec >> source & 1 ? from[source] : 0;
    }
    blend(wave.lanes(in.operand[0].index), out, exec);
}

static const bool there = [] {
    const std::initializer_list<Type> types = {Type::u32, Type::u32, Type::u32};
    auto row = [&](const char* what, Handler run) { H(std::string("ds_read_") + what, types, run); };
    row("b32", read<1, Part::word>), row("b64", read<2, Part::word>), row("b96", read<3, Part::word>), row("b128", read<4, Part::word>);
    row("u8", read<1, Part::u8_>), row("i8", read<1, Part::i8_>), row("u16", read<1, Part::u16_>), row("i16", read<1, Part::i16_>);
    row("u8_d16", read<1, Part::low_u8>), row("u8_d16_hi", read<1, Part::high_u8>);
    row("i8_d16", read<1, Part::low_i8>), row("i8_d16_hi", read<1, Part::high_i8>);
    row("u16_d16", read<1, Part::low16>), row("u16_d16_hi", read<1, Part::high16>);
    H("ds_read2_b32", types, read_two<1, 4>), H("ds_read2_b64", types, read_two<2, 8>);
    H("ds_read2st64_b32", types, read_two<1, 256>), H("ds_read2st64_b64", types, read_two<2, 512>);
    H("ds_write_b8", types, write<1, 1, false>), H("ds_write_b8_d16_hi", types, write<1, 1, true>);
    H("ds_write_b16", types, write<1, 2, false>), H("ds_write_b16_d16_hi", types, write<1, 2, true>);
    H("ds_write_b32", types, write<1, 4, false>), H("ds_write_b64", types, write<2, 4, false>);
    H("ds_write_b96", types, write<3, 4, false>), H("ds_write_b128", types, write<4, 4, false>);
    H("ds_write2_b32", types, write_two<1, 4>), H("ds_write2_b64", types, write_two<2, 8>);
    H("ds_write2st64_b32", types, write_two<1, 256>), H("ds_write2st64_b64", types, write_two<2, 512>);
    atomics<u32, i32>("32"), atomics<u64, i64>("64"), compare_and_store<f32>("f32"), compare_and_store<f64>("f64");
    A<f32>("add", "f32", [](f32 x, f32 d) { return x + d; });
    A<f64>("add", "f64", [](f64 x, f64 d) { return x + d; });
    A<f32>("min", "f32", [](f32 x, f32 d) { return std::fmin(x, d); });
    A<f32>("max", "f32", [](f32 x, f32 d) { return std::fmax(x, d); });
    A<f64>("min", "f64", [](f64 x, f64 d) { return std::fmin(x, d); });
    A<f64>("max", "f64", [](f64 x, f64 d) { return std::fmax(x, d); });
    A<u32>("pk_add", "f16", [](u32 x, u32 d) {
        auto sum = [&](int s) { return u32(bits(f16(as_f16(u16(x >> s)) + as_f16(u16(d >> s))))) << s; };
        return sum(0) | sum(16);
    });
    A<u32>("pk_add", "bf16", [](u32 x, u32 d) {
        auto sum = [&](int s) { return u32(to_bf16(from_bf16(u16(x >> s)) + from_bf16(u16(d >> s)))) << s; };
        return sum(0) | sum(16);
    });
    H("ds_bpermute_b32", types, bpermute), H("ds_permute_b32", types, permute), H("ds_swizzle_b32", types, swizzle);
    H("ds_nop", types, [](Wave&, const Instruction&) {});
    return true;
}();

}  // namespace machine
