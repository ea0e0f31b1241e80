// Access to the memory that a launch may use: the host's allocations, by their real addresses.
#pragma once

#include "machine.h"

namespace machine {

// The place of `bytes` at an address for one lane; null, and a finding, if it lies outside of every allocation.
u8* place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write);

// The place of one lane's bytes wherever its address points: LDS, scratch or an allocation.
u8* anywhere(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write);

// The same of a place in LDS. In a checking run a workgroup's LDS lies elsewhere and has no size here.
inline u8* lds_place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write) {
    std::vector<u8>& lds = wave.group->lds;
    if (address + bytes <= lds.size()) return lds.data() + address;
    if (wave.watch) return wave.watch->place(wave, in, lane, SHARED_APERTURE + address, bytes, write);
    wave.group->launch.report(wave, in, Fault::lds_outside, u32(lane), address);
    return nullptr;
}

// A buffer's base and size from its four words. `swizzled`: its addresses are permuted or depend on the lane's number.
struct Descriptor {
    u64 base, bytes;
    u32 stride;
    bool swizzled;
};
Descriptor descriptor(const Wave& wave, const Operand& op);

// How the bytes that a lane loads become a register: extended, or into one half (D16). The
// other half becomes 0: with ECC on the registers, which an MI300 always has, a load writes all of one.
enum class Part { word, u8_, i8_, u16_, i16_, low_u8, low_i8, low16, high_u8, high_i8, high16 };

template <Part P> constexpr bool IS_HIGH = P == Part::high_u8 || P == Part::high_i8 || P == Part::high16;
template <Part P> constexpr bool IS_SHORT = P == Part::u16_ || P == Part::i16_ || P == Part::low16 || P == Part::high16;
template <Part P> constexpr u32 PART_BYTES = P == Part::word ? 4 : IS_SHORT<P> ? 2 : 1;

template <Part P> inline u32 loaded(const u8* at) {
    u32 x = 0;
    std::memcpy(&x, at, PART_BYTES<P>);
    if constexpr (P == Part::i8_) return u32(i32(i8(x)));
    if constexpr (P == Part::i16_) return u32(i32(i16(x)));
    if constexpr (P == Part::low_i8 || P == Part::high_i8) x = u16(i16(i8(x)));
    if constexpr (IS_HIGH<P>) return x << 16;
    return x;
}

}  // namespace machine
