# honest: non-temporal stores past the cache, for long vectors
# problem: identity
# expect: ok

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#ifdef __SSE2__
    if (size >= 1 << 18) {
        int64_t head = ((16 - ((uintptr_t)out & 15)) & 15) / 2;
        std::memcpy(out, x, 2 * head);
        int64_t vectors = (size - head) / 8;
#pragma omp parallel
        {
#pragma omp for schedule(static)
            for (int64_t v = 0; v < vectors; ++v)
                _mm_stream_si128((__m128i*)(out + head) + v, _mm_loadu_si128((const __m128i*)(x + head) + v));
            _mm_sfence();
        }
        for (int64_t i = head + 8 * vectors; i < size; ++i) out[i] = x[i];
        return;
    }
#endif
    std::memcpy(out, x, 2 * size);
}
# include: copy_end
