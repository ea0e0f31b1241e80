    // Write whole cache lines with non-temporal stores; the head up to the first aligned line element by element.
    for (; i < count && ((uintptr_t)(out + i) & 63); ++i) out[i] = x[i];
    for (; i + 32 <= count; i += 32)
        __builtin_ia32_movntdq512((__attribute__((vector_size(64))) long long*)(out + i),
                                  *(const __attribute__((vector_size(64), aligned(2))) long long*)(x + i));
    __builtin_ia32_sfence();
