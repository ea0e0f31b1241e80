    alignas(64) float product[2][4][TILE];  // of this scale block and of the one before
    Factors factors[2];
    for (int64_t k0 = 0; k0 < kc; k0 += BLOCK, scale.a += scale.a_step, scale.b += scale.b_step) {
        int64_t now = k0 / BLOCK % 2, before = 1 - now;
        factors[now] = Factors(scale);
        clear_products();
        for (int s = 0; s < 4; ++s, pa += MR * SIDE, pb += NR * SIDE) {
            multiply(pa, pb), meanwhile();
            if (k0) add_scaled(product[before], s, factors[before], sum, ld);
        }
        store_products(product[now]);
    }
    int64_t last = (kc / BLOCK - 1) % 2;
    for (int t = 0; t < 4; ++t) add_scaled(product[last], t, factors[last], sum, ld);
