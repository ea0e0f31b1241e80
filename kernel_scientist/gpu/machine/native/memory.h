// Access to the memory that a launch may use: the host's allocations, by their real addresses.
#pragma once

#include "machine.h"

namespace machine {

// The place of `bytes` at an address for one lane; null, and a finding, if it lies outside of every allocation.
u8* place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write);

// The same of a place in LDS. In a checking run a workgroup's LDS lies elsewhere and has no size here.
inline u8* lds_place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write) {
    std::vector<u8>& lds = wave.group->lds;
    if (address + bytes <= lds.size()) return lds.data() + address;
    if (wave.watch) return wave.watch->place(wave, in, lane, SHARED_APERTURE + address, bytes, write);
    wave.group->launch.report(wave, in, Fault::lds_outside, u32(lane), address);
    return nullptr;
}

// A buffer's base and size from its four words. Swizzled buffers are refused when they are met.
struct Descriptor {
    u64 base, bytes;
    u32 stride;
};
Descriptor descriptor(const Wave& wave, const Operand& op);

}  // namespace machine
