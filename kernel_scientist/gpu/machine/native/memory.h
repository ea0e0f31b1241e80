// Access to the memory that a launch may use: the host's allocations, by their real addresses.
#pragma once

#include "machine.h"

namespace machine {

// The place of `bytes` at an address for one lane; null, and a finding, if it lies outside of every allocation.
u8* place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write);

// A buffer's base and size from its four words. `swizzled`: its addresses are permuted or depend on the lane's number.
struct Descriptor {
    u64 base, bytes;
    u32 stride;
    bool swizzled;
};
Descriptor descriptor(const Wave& wave, const Operand& op);

}  // namespace machine
