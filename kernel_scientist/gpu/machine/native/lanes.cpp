// Permutations of lanes (DPP) and parts of lanes (SDWA).
#include "lanes.h"

namespace machine {

std::vector<Row>& rows() {
    static std::vector<Row> all;
    return all;
}

// The lane that DPP reads for `lane`, or -1 if there is none. Numbers of controls: the ISA document, "DPP Enumerations".
static int source_lane(int control, int lane) {
    const int row = lane & ~15, place = lane & 15, n = control & 15;
    if (control < 0x100) return (lane & ~3) | (control >> 2 * (lane & 3) & 3);
    if (control < 0x110) return place + n < 16 ? lane + n : -1;
    if (control < 0x120) return place >= n ? lane - n : -1;
    if (control < 0x130) return row | ((place - n) & 15);
    switch (control) {
        case 0x130: return lane + 1 < LANES ? lane + 1 : -1;
        case 0x134: return (lane + 1) & 63;
        case 0x138: return lane - 1;
        case 0x13c: return (lane - 1) & 63;
        case 0x140: return row | (15 - place);
        case 0x141: return (lane & ~7) | (7 - (lane & 7));
        case 0x142: return row - 1;
        case 0x143: return lane >= 32 ? 31 : -1;
    }
    return control >= 0x150 && control < 0x160 ? row | n : -1;
}

void permuted(Wave& wave, const Instruction& in, const u32* from, u32* to) {
    alignas(64) u32 result[LANES];
    const u64 exec = wave.exec();
    u64 mask = 0;
    for (int l = 0; l < LANES; ++l) {
        const int source = source_lane(in.dpp, l);
        const bool there = source >= 0 && (exec >> source & 1);
        result[l] = there ? from[source] : 0;
        const bool enabled = (in.row_mask >> (l >> 4) & 1) && (in.bank_mask >> (l >> 2 & 3) & 1);
        if (enabled && (there || (in.flags & BOUND_CTRL))) mask |= 1ull << l;
    }
    wave.dpp_mask = mask;
    std::memcpy(to, result, sizeof result);
}

void selected(const u32* from, u32* to, u8 selection, bool sign) {
    const int width = selection < 4 ? 8 : selection < 6 ? 16 : 32, shift = selection < 4 ? 8 * selection : selection == 5 ? 16 : 0;
    for (int l = 0; l < LANES; ++l) {
        const u32 part = from[l] >> shift << (32 - width);
        to[l] = sign ? u32(i32(part) >> (32 - width)) : part >> (32 - width);
    }
}

void write_selected(Wave&, const Instruction& in, u32* to, const u32* from, u64 mask) {
    const u8 selection = in.sdwa[0], rest = in.sdwa[1];
    if (selection == 6) return blend(to, from, mask);
    const int width = selection < 4 ? 8 : 16, shift = selection < 4 ? 8 * selection : selection == 5 ? 16 : 0;
    const u32 field = (width == 8 ? 0xffu : 0xffffu) << shift;
    alignas(64) u32 result[LANES];
    for (int l = 0; l < LANES; ++l) {
        const u32 part = from[l] << shift & field;
        if (rest == 0) result[l] = part;                                                            // pad with zeros
        else if (rest == 1) result[l] = u32(i32(part << (32 - width - shift)) >> (32 - width - shift));  // extend the sign
        else result[l] = part | (to[l] & ~field);                                                   // preserve
    }
    blend(to, result, mask);
}

static std::vector<f32> table(f32 (*value)(u8)) {
    std::vector<f32> found(256);
    for (int code = 0; code < 256; ++code) found[code] = value(u8(code));
    return found;
}
static const std::vector<f32> fp8 = table(from_fnuz8<3>), bf8 = table(from_fnuz8<2>);
const f32* const FP8 = fp8.data();
const f32* const BF8 = bf8.data();

}  // namespace machine
