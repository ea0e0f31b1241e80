// How the calling thread treats denormal numbers of fp32.
#pragma once
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace machine {

#if defined(__x86_64__)
using FloatMode = unsigned;
constexpr FloatMode FLUSH = 0x8040;  // DAZ and FTZ of MXCSR
inline FloatMode float_mode() { return _mm_getcsr(); }
inline void set_float_mode(FloatMode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
using FloatMode = unsigned long long;
constexpr FloatMode FLUSH = 1ull << 24;  // FZ of FPCR
inline FloatMode float_mode() {
    FloatMode mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
inline void set_float_mode(FloatMode mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
#error "it is not known how this processor is made to flush denormal numbers"
#endif

// Keep denormal numbers, or flush them to zero.
inline void set_denormals(bool keep) {
    const FloatMode now = float_mode(), wanted = keep ? now & ~FLUSH : now | FLUSH;
    if (now != wanted) set_float_mode(wanted);
}

// Denormal numbers are kept as long as this lives, as those of fp64 are in all modes.
class Kept {
    const FloatMode before_ = float_mode();

public:
    Kept() { set_denormals(true); }
    ~Kept() {
        if (before_ & FLUSH) set_float_mode(before_);
    }
};

}  // namespace machine
