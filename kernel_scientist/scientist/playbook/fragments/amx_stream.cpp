#pragma omp parallel num_threads(threads)
    {
        Tiles tiles;
        #pragma omp for schedule(static)
        for (int64_t t = 0; t < tiles_m; ++t)
            pack_rows<MR>(a, m, t * MR, 0, k, panel_a + t * MR * k / DEPTH, Nothing());
        // A thread has panels of columns of its own; threads that are left over share them, with rows of their own.
        int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
        int64_t across = std::min(team, tiles_n), down = team / across, row = me / across, column = me % across;
        int64_t first_m = tiles_m * row / down, end_m = row < down ? tiles_m * (row + 1) / down : first_m;
        int64_t first_n = tiles_n * column / across, end_n = tiles_n * (column + 1) / across;
        element *panel = scratch<element>(1, 2 * NR * k / DEPTH), *next = panel + NR * k / DEPTH;
        float* tile = scratch<float>(2, MR * NR);
        int64_t calls = std::max<int64_t>(1, (end_m - first_m) * MR * NR / 1024), share = (16 + calls - 1) / calls;
        if (first_m < end_m) pack<NR>(b, n, first_n * NR, 0, k, panel, Nothing());
        for (int64_t tn = first_n; tn < end_n; ++tn, std::swap(panel, next)) {
            int64_t p = tn + 1 < end_n ? 0 : k;
            auto decode_next = [&, next] {
                for (int64_t i = 0; i < share && p < k; ++i, p += STEP<NR>)
                    pack_step<NR>(b + p * n, n, (tn + 1) * NR, p, next);
            };
            for (int64_t tm = first_m; tm < end_m; ++tm) {
                std::fill(tile, tile + MR * NR, 0.0f);
                micro(panel_a + tm * k / DEPTH * MR, panel, k, tile, NR,
                      {a_scale + tm * MR, b_scale + tn * NR / BLOCK, m, blocks_n, m - tm * MR}, decode_next);
                int64_t rows = std::min<int64_t>(MR, m - tm * MR), columns = std::min<int64_t>(NR, n - tn * NR);
                for (int64_t i = 0; i < rows; ++i)
                    for (int64_t j = 0; j < columns; ++j)
                        c[(tm * MR + i) * n + tn * NR + j] = to_bf16(tile[i * NR + j]);
            }
        }
    }
