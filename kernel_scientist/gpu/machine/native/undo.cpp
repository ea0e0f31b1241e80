// What a launch changed in memory under a checking run: put back, and joined with what another run changed.
#include "checker.h"

namespace machine {

// Keep what a page holds before the launch first changes it.
void Checker::save(u64 address, u32 bytes) {
    for (u64 page = address / PAGE; page <= (address + bytes - 1) / PAGE; ++page) {
        const u64 key = page << 16 ^ u64(near_ - launch_.allocations);
        if (saved_.count(key)) continue;
        const u64 start = std::max(page * PAGE, near_->start), end = std::min((page + 1) * PAGE, near_->start + near_->bytes);
        Saved& kept = saved_[key];
        kept.start = start;
        kept.bytes.assign(reinterpret_cast<u8*>(start), reinterpret_cast<u8*>(end));
        if (const Values* values = shadow_.find(start)) {
            kept.delta.assign(values->delta + start % PAGE, values->delta + start % PAGE + (end - start));
            kept.origins.assign(values->origin + start % PAGE / 4, values->origin + (start % PAGE + (end - start) + 3) / 4);
        }
    }
}

void Checker::undo() {
    for (auto& [key, kept] : saved_) {
        if (const Values* values = shadow_.find(kept.start)) kept.after = *values;
        std::memcpy(reinterpret_cast<u8*>(kept.start), kept.bytes.data(), kept.bytes.size());
        shadow_.define(kept.start, kept.bytes.size());
        if (kept.delta.empty()) continue;
        Values& values = shadow_.make(kept.start);
        std::memcpy(values.delta + kept.start % PAGE, kept.delta.data(), kept.delta.size());
        std::memcpy(values.origin + kept.start % PAGE / 4, kept.origins.data(), kept.origins.size() * 4);
    }
    earlier_ = std::move(saved_);
    saved_.clear();
}

void Checker::join() {
    for (const auto& [key, kept] : earlier_)
        for (u64 n = 0; n < kept.bytes.size(); ++n) {
            const u64 at = (kept.start + n) % PAGE;
            if (!kept.after.delta[at] || kept.after.origin[at / 4] <= POINTER) continue;
            Values& values = shadow_.make(kept.start);
            // What one run reads too early is not written yet in another: the race is the reason.
            const auto races = [&](u32 origin) { return Cause(shadow_.records[origin].kind) == Cause::race_read || Cause(shadow_.records[origin].kind) == Cause::race_write; };
            const bool told = values.delta[at] && (races(values.origin[at / 4]) || !races(kept.after.origin[at / 4]));
            if (!told) values.delta[at] = kept.after.delta[at], values.origin[at / 4] = kept.after.origin[at / 4];
        }
}

}  // namespace machine
