// Rows of vector memory instructions: buffer, global, flat and scratch loads, stores and atomic operations.
#include "memory.h"

#include "counter.h"
#include "lanes.h"

namespace machine {

const Allocation* Launch::containing(u64 address) const {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (allocations[middle].start <= address) low = middle + 1;
        else high = middle;
    }
    if (low == 0) return nullptr;
    const Allocation& found = allocations[low - 1];
    return address - found.start < found.bytes ? &found : nullptr;
}

u8* place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write) {
    if (wave.watch) return wave.watch->place(wave, in, lane, address, bytes, write);
    const Allocation* found = wave.near;
    if (!found || address - found->start >= found->bytes) found = wave.group->launch.containing(address);
    if (!found || address - found->start + bytes > found->bytes) {
        wave.group->launch.report(wave, in, write ? Fault::write_outside : Fault::read_outside, u32(lane), address);
        return nullptr;
    }
    wave.near = found;
    if (write && !found->writable) {
        wave.group->launch.report(wave, in, Fault::write_read_only, u32(lane), address);
        return nullptr;
    }
    return reinterpret_cast<u8*>(address);
}

Descriptor descriptor(const Wave& wave, const Operand& op) {
    const u32* d = wave.s + op.index;
    return {u64(d[0]) | u64(d[1] & 0xffff) << 32, d[2], d[1] >> 16 & 0x3fff, d[1] >> 31 || (d[3] >> 23 & 1)};
}

// Addresses of the lanes, and which of them take part.
struct Addresses {
    u64 of[LANES];
    u64 mask;
    u64 zeroed = 0;  // lanes that a buffer's range switches off: a load of them is 0
    u64 partial = 0;  // lanes of which only the first words are within that range
    u8 words[LANES];  // how many, of those lanes
};
using Addressing = Addresses (*)(Wave&, const Instruction&, u32 bytes);
static inline void count(Wave& wave, const Instruction& in, const Addresses& a, u32 bytes) {
    if (wave.counter) wave.counter->memory(in, a.of, a.mask, bytes);
}

// vdata, vaddr, descriptor, soffset. Raw buffers: each word is in range that ends there; strided ones: by record. What is
// added to the base wraps at 32 bits, but for soffset.
static Addresses of_buffer(Wave& wave, const Instruction& in, u32 bytes) {
    const int first = in.flags & TO_LDS ? 0 : 1;
    const Descriptor d = descriptor(wave, in.operand[first + 1]);
    if (d.swizzled) wave.group->launch.report(wave, in, Fault::refused, 0, d.base);
    const u32 soffset = scalar<u32>(wave, in.operand[first + 2]);
    const u32* offsets = in.flags & OFFEN ? wave.lanes(in.operand[first].index + (in.flags & IDXEN ? 1 : 0)) : nullptr;
    const u32* indices = in.flags & IDXEN ? wave.lanes(in.operand[first].index) : nullptr;
    Addresses a;
    u64 inside = 0;
    for (int l = 0; l < LANES; ++l) {
        const u64 offset = u32(u32(in.offset) + (offsets ? offsets[l] : 0));
        const u64 index = indices ? indices[l] : 0;
        const bool fits = d.stride && indices ? index < d.bytes : offset + bytes + soffset <= d.bytes;
        a.of[l] = d.base + index * d.stride + offset + soffset;
        inside |= u64(fits) << l;
        const u64 start = offset + soffset;
        if (!fits && !(d.stride && indices) && start + 4 <= d.bytes && bytes > 4)
            a.partial |= u64(1) << l, a.words[l] = u8((d.bytes - start) / 4);
    }
    a.mask = wave.exec() & inside;
    a.partial &= wave.exec();
    a.zeroed = wave.exec() & ~inside & ~a.partial;
    if (wave.watch && a.zeroed) wave.watch->beyond(wave, a.zeroed, d.base, d.stride ? 0 : d.bytes, a.of);
    return a;
}
// vaddr of 64 bits, and "off" or nothing as the last operand; or vaddr of 32 bits, and saddr. `N`: where vaddr is.
template <int N> static Addresses of_global(Wave& wave, const Instruction& in, u32) {
    Addresses a;
    a.mask = wave.exec();
    const u32* low = wave.lanes(in.operand[N].index);
    const Operand& saddr = in.operand[in.operands - 1];
    if (saddr.kind == Kind::scalar) {
        const u64 base = wave.pair(saddr.index) + u64(i64(in.offset));
        for (int l = 0; l < LANES; ++l) a.of[l] = base + low[l];
    } else {
        for (int l = 0; l < LANES; ++l) a.of[l] = (u64(low[l]) | u64(low[LANES + l]) << 32) + u64(i64(in.offset));
    }
    return a;
}
// vaddr or "off", and saddr or "off" as the last operand. Each lane has its own bytes.
template <int N> static Addresses of_scratch(Wave& wave, const Instruction& in, u32) {
    Addresses a;
    a.mask = wave.exec();
    const Operand &v = in.operand[N], &s = in.operand[in.operands - 1];
    const u32 base = (s.kind == Kind::scalar ? wave.s[s.index] : 0) + u32(in.offset);
    const u32* lanes = v.kind == Kind::vector ? wave.lanes(v.index) : nullptr;
    for (int l = 0; l < LANES; ++l) a.of[l] = PRIVATE_APERTURE + (base + (lanes ? lanes[l] : 0));
    return a;
}

u8* anywhere(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write) {
    if (wave.watch) return wave.watch->place(wave, in, lane, address, bytes, write);
    const u64 aperture = address & ~0xffffffffull, offset = address & 0xffffffffull;
    Launch& launch = wave.group->launch;
    if (aperture == SHARED_APERTURE) return lds_place(wave, in, lane, offset, bytes, write);
    if (aperture == PRIVATE_APERTURE) {
        if (offset + bytes <= launch.order.scratch_bytes) return wave.scratch + size_t(lane) * launch.order.scratch_bytes + offset;
        launch.report(wave, in, Fault::scratch_outside, u32(lane), offset);
        return nullptr;
    }
    return place(wave, in, lane, address, bytes, write);
}

// Whether all lanes lie within one allocation, so that none needs to be looked at alone.
static bool all_within(Wave& wave, const Addresses& a, u32 bytes, bool write) {
    if (!a.mask || wave.watch) return false;
    const u64 first = a.of[std::countr_zero(a.mask)];
    const Allocation* near = wave.near;
    if (!near || first - near->start >= near->bytes) near = wave.group->launch.containing(first);
    if (!near || near->bytes < bytes || (write && !near->writable)) return false;
    wave.near = near;
    const u64 start = near->start, last = near->bytes - bytes;
    u64 outside = 0;
    if (a.mask == ALL) {
        for (int l = 0; l < LANES; ++l) outside |= u64(a.of[l] - start > last);
    } else {
        for (int l = 0; l < LANES; ++l) outside |= u64(a.of[l] - start > last) & (a.mask >> l & 1);
    }
    return !outside;
}

template <class F> static inline void each(Wave& wave, const Instruction& in, const Addresses& a, u32 bytes, bool write, F act) {
    const bool safe = all_within(wave, a, bytes, write);
    if (safe && a.mask == ALL) {
        for (int l = 0; l < LANES; ++l) act(l, reinterpret_cast<u8*>(a.of[l]));
        return;
    }
    for (u64 left = a.mask; left; left &= left - 1) {
        const int l = std::countr_zero(left);
        u8* at = safe ? reinterpret_cast<u8*>(a.of[l]) : anywhere(wave, in, l, a.of[l], bytes, write);
        act(l, at);
    }
}

// Act on the words of lanes that a buffer's range contains in part.
template <class F> static inline void each_partial(Wave& wave, const Instruction& in, const Addresses& a, bool write, F act) {
    for (u64 left = a.partial; left; left &= left - 1) {
        const int l = std::countr_zero(left);
        for (u32 n = 0; n < a.words[l]; ++n) act(l, n, anywhere(wave, in, l, a.of[l] + 4 * n, 4, write));
    }
}

// Load to LDS: M0 + offset + the size of a lane's data, at least 4 bytes, whatever the addresses are.
template <Part P> static void to_lds(Wave& wave, const Instruction& in, const Addresses& a, u32 bytes) {
    const u64 base = (wave.s[M0] & 0xffff) + u32(in.offset);
    const u32 step = bytes < 4 ? 4 : bytes;
    for (int l = 0; l < LANES; ++l) {
        if (!(wave.exec() >> l & 1)) continue;
        u8* to = lds_place(wave, in, l, base + u64(step) * l, step, true);
        if (!to) continue;
        std::memset(to, 0, step);
        const u32 there = a.partial >> l & 1 ? 4 * a.words[l] : a.mask >> l & 1 ? bytes : 0;
        const u8* from = there ? anywhere(wave, in, l, a.of[l], there, false) : nullptr;
        if (!from) continue;
        const u32 first = loaded<P>(from);
        std::memcpy(to, &first, 4);
        if (there > 4) std::memcpy(to + 4, from + 4, there - 4);
    }
}

template <Part P, u32 BYTES> static void load_lds(Wave& wave, const Instruction& in) {
    const Addresses a = of_global<0>(wave, in, BYTES);
    count(wave, in, a, BYTES);
    to_lds<P>(wave, in, a, BYTES);
}

// Loads of N words, or of one part. `A`: how lanes are addressed.
template <Addressing A, int N, Part P> static void load(Wave& wave, const Instruction& in) {
    constexpr u32 bytes = N > 1 ? 4 * N : PART_BYTES<P>;
    const Addresses a = A(wave, in, bytes);
    count(wave, in, a, bytes);
    if (in.flags & TO_LDS) return to_lds<P>(wave, in, a, bytes);
    u32* to = wave.lanes(in.operand[0].index);
    for (u64 left = a.zeroed | a.partial; left; left &= left - 1)
        for (int n = 0; n < N; ++n) to[n * LANES + std::countr_zero(left)] = 0;
    // The address may lie in the registers that are loaded, but was read above.
    each(wave, in, a, bytes, false, [&](int l, const u8* at) {
        if (!at) {
            for (int n = 0; n < N; ++n) to[n * LANES + l] = 0;
            return;
        }
        for (int n = 0; n < N; ++n) to[n * LANES + l] = loaded<P>(at + 4 * n);
    });
    if constexpr (N > 1)
        each_partial(wave, in, a, false, [&](int l, u32 n, const u8* at) { to[n * LANES + l] = at ? loaded<P>(at) : 0; });
}
// Stores of N words, or of the low or high bytes of one. `V`: where the data is among the operands.
template <Addressing A, int N, int BYTES, bool HIGH, int V> static void store(Wave& wave, const Instruction& in) {
    constexpr u32 bytes = N > 1 ? 4 * N : BYTES;
    const Addresses a = A(wave, in, bytes);
    count(wave, in, a, bytes);
    const u32* from = wave.lanes(in.operand[V].index);
    each(wave, in, a, bytes, true, [&](int l, u8* at) {
        if (!at) return;
        if constexpr (N == 1) {
            const u32 x = HIGH ? from[l] >> 16 : from[l];
            std::memcpy(at, &x, BYTES);
        } else {
            for (int n = 0; n < N; ++n) std::memcpy(at + 4 * n, from + n * LANES + l, 4);
        }
    });
    if constexpr (N > 1)
        each_partial(wave, in, a, true, [&](int l, u32 n, u8* at) {
            if (at) std::memcpy(at, from + n * LANES + l, 4);
        });
}

// Atomic operations, lane by lane, on T. The former value goes to operand 0 if sc0 is set.
template <class T, class F> static T exchanged(u8* at, T data, F f) {
    using Raw = std::conditional_t<sizeof(T) == 8, u64, u32>;
    Raw* cell = reinterpret_cast<Raw*>(at);
    Raw before = __atomic_load_n(cell, __ATOMIC_RELAXED), after;
    do after = std::bit_cast<Raw>(f(std::bit_cast<T>(before), data));
    while (!__atomic_compare_exchange_n(cell, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return std::bit_cast<T>(before);
}
// `R`: operands before the address if a former value is returned (buffer instructions always name the data first).
template <Addressing RETURNING, Addressing SILENT, class T, class F, bool BUFFER, bool SWAP>
static void atomic(Wave& wave, const Instruction& in) {
    const bool returns = in.flags & SC0;
    const Addresses a = (returns ? RETURNING : SILENT)(wave, in, sizeof(T));
    count(wave, in, a, sizeof(T));
    const int where = BUFFER ? 0 : returns ? 2 : 1;
    const u32* data = wave.lanes(in.operand[where].index);
    alignas(64) u32 given[4 * LANES];
    std::memcpy(given, data, sizeof(T) / 4 * LANES * 4 * (SWAP ? 2 : 1));
    u32* to = wave.lanes(in.operand[0].index);
    for (u64 left = returns ? a.zeroed : 0; left; left &= left - 1) put<T>(to, std::countr_zero(left), T{});
    for (u64 left = a.mask; left; left &= left - 1) {
        const int l = std::countr_zero(left);
        u8* at = anywhere(wave, in, l, a.of[l], sizeof(T), true);
        T before{};
        if (at) {
            if constexpr (SWAP) {
                const T wanted = get<T>(given + sizeof(T) / 4 * LANES, l);
                before = exchanged<T>(at, get<T>(given, l), [&](T x, T d) { return x == wanted ? d : x; });
            } else before = exchanged<T>(at, get<T>(given, l), F{});
        }
        if (returns) put<T>(to, l, before);
    }
}


template <Addressing A, int N> static void loads(const std::string& space) {
    const std::initializer_list<Type> types = {Type::u32, Type::u32, Type::u32, Type::u32};
    auto row = [&](const char* what, Handler run) { H(space + "_load_" + what, types, run); };
    row("ubyte", load<A, 1, Part::u8_>), row("sbyte", load<A, 1, Part::i8_>);
    row("ushort", load<A, 1, Part::u16_>), row("sshort", load<A, 1, Part::i16_>);
    row("dword", load<A, 1, Part::word>), row("dwordx2", load<A, 2, Part::word>);
    row("dwordx3", load<A, 3, Part::word>), row("dwordx4", load<A, 4, Part::word>);
    row("ubyte_d16", load<A, 1, Part::low_u8>), row("ubyte_d16_hi", load<A, 1, Part::high_u8>);
    row("sbyte_d16", load<A, 1, Part::low_i8>), row("sbyte_d16_hi", load<A, 1, Part::high_i8>);
    row("short_d16", load<A, 1, Part::low16>), row("short_d16_hi", load<A, 1, Part::high16>);
}
template <Addressing A, int V> static void stores(const std::string& space) {
    const std::initializer_list<Type> types = {Type::u32, Type::u32, Type::u32, Type::u32};
    auto row = [&](const char* what, Handler run) { H(space + "_store_" + what, types, run); };
    row("byte", store<A, 1, 1, false, V>), row("byte_d16_hi", store<A, 1, 1, true, V>);
    row("short", store<A, 1, 2, false, V>), row("short_d16_hi", store<A, 1, 2, true, V>);
    row("dword", store<A, 1, 4, false, V>), row("dwordx2", store<A, 2, 4, false, V>);
    row("dwordx3", store<A, 3, 4, false, V>), row("dwordx4", store<A, 4, 4, false, V>);
}
template <Addressing R, Addressing S, bool BUFFER> static void atomics(const std::string& space) {
    const std::initializer_list<Type> types = {Type::u32, Type::u32, Type::u32, Type::u32};
    auto row = [&]<class T, bool SWAP = false, class F>(const std::string& what, T, F, std::bool_constant<SWAP> = {}) {
        H(space + "_atomic_" + what, types, atomic<R, S, T, F, BUFFER, SWAP>);
    };
    auto both = [&]<class F>(const std::string& what, F f) { row(what, u32{}, f), row(what + "_x2", u64{}, f); };
    both("swap", [](auto, auto d) { return d; });
    both("add", [](auto x, auto d) { return x + d; });
    both("sub", [](auto x, auto d) { return x - d; });
    both("and", [](auto x, auto d) { return x & d; });
    both("or", [](auto x, auto d) { return x | d; });
    both("xor", [](auto x, auto d) { return x ^ d; });
    both("umin", [](auto x, auto d) { return x < d ? x : d; });
    both("umax", [](auto x, auto d) { return x > d ? x : d; });
    both("inc", [](auto x, auto d) { return x >= d ? decltype(x)(0) : x + 1; });
    both("dec", [](auto x, auto d) { return x == 0 || x > d ? d : x - 1; });
    auto least = [](auto x, auto d) { return x < d ? x : d; };
    auto most = [](auto x, auto d) { return x > d ? x : d; };
    row("smin", i32{}, least), row("smin_x2", i64{}, least), row("smax", i32{}, most), row("smax_x2", i64{}, most);
    row("cmpswap", u32{}, least, std::true_type{}), row("cmpswap_x2", u64{}, least, std::true_type{});
    row("add_f32", f32{}, [](f32 x, f32 d) { return x + d; });
    row("add_f64", f64{}, [](f64 x, f64 d) { return x + d; });
    row("min_f64", f64{}, [](f64 x, f64 d) { return std::fmin(x, d); });
    row("max_f64", f64{}, [](f64 x, f64 d) { return std::fmax(x, d); });
    row("pk_add_f16", u32{}, [](u32 x, u32 d) {
        auto sum = [&](int shift) { return u32(bits(f16(as_f16(u16(x >> shift)) + as_f16(u16(d >> shift))))) << shift; };
        return sum(0) | sum(16);
    });
    row("pk_add_bf16", u32{}, [](u32 x, u32 d) {
        auto sum = [&](int shift) { return u32(to_bf16(from_bf16(u16(x >> shift)) + from_bf16(u16(d >> shift)))) << shift; };
        return sum(0) | sum(16);
    });
}

// Atomic operations are in range as a whole.
static Addresses of_buffer_atomic(Wave& wave, const Instruction& in, u32 bytes) {
    Addresses a = of_buffer(wave, in, bytes);
    a.zeroed |= a.partial, a.partial = 0;
    return a;
}

static const bool there = [] {
    loads<of_buffer, 1>("buffer"), stores<of_buffer, 0>("buffer"), atomics<of_buffer_atomic, of_buffer_atomic, true>("buffer");
    loads<of_global<1>, 1>("global"), stores<of_global<0>, 1>("global"), atomics<of_global<1>, of_global<0>, false>("global");
    loads<of_global<1>, 1>("flat"), stores<of_global<0>, 1>("flat"), atomics<of_global<1>, of_global<0>, false>("flat");
    loads<of_scratch<1>, 1>("scratch"), stores<of_scratch<0>, 1>("scratch");
    H("global_load_lds_dword", {Type::u32, Type::u32}, load_lds<Part::word, 4>);
    H("global_load_lds_dwordx3", {Type::u32, Type::u32}, load_lds<Part::word, 12>);
    H("global_load_lds_dwordx4", {Type::u32, Type::u32}, load_lds<Part::word, 16>);
    H("global_load_lds_ushort", {Type::u32, Type::u32}, load_lds<Part::u16_, 2>);
    H("global_load_lds_ubyte", {Type::u32, Type::u32}, load_lds<Part::u8_, 1>);
    return true;
}();

}  // namespace machine
