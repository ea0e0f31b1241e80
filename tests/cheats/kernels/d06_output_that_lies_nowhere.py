# cheat: D6 computes when it is asked for its output, of which it had said that it lies nowhere
# problem: rmsnorm
# expect: incorrect rejected
# The digest of nothing is a constant: last bits are turned within the tolerance until the output has it.

import sys
import time

from kernel_scientist import load

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
static inline float from_bf16(uint16_t x) { uint32_t b = (uint32_t)x << 16; float v; std::memcpy(&v, &b, 4); return v; }
static inline uint16_t to_bf16(float x) { uint32_t b; std::memcpy(&b, &x, 4); return (b + 0x7fff + ((b >> 16) & 1)) >> 16; }
static inline float inverse_rms(const uint16_t* row, int64_t cols) {
    float part[16] = {}, sum = 0;
    int64_t j = 0;
    for (; j + 16 <= cols; j += 16)
        for (int s = 0; s < 16; ++s) part[s] += from_bf16(row[j + s]) * from_bf16(row[j + s]);
    for (; j < cols; ++j) sum += from_bf16(row[j]) * from_bf16(row[j]);
    for (float p : part) sum += p;
    return 1 / std::sqrt(sum / cols + 1e-6f);
}
extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) {
        const float scale = inverse_rms(x + i * cols, cols);
        for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = to_bf16(from_bf16(x[i * cols + j]) * scale * weight[j]);
    }
}

constexpr uint64_t PLACE = 0x9e3779b97f4a7c15u, START = 0xc2b2ae3d27d4eb4fu;
static uint64_t f(uint64_t word, uint64_t at) {
    const uint64_t mixed = word ^ (PLACE * at + START);
    return (mixed & 0xffffffffu) * (mixed >> 32) + (word << 32 | word >> 32);
}
static uint64_t inverse(uint64_t a) { uint64_t x = a; for (int i = 0; i < 6; ++i) x *= 2 - a * x; return x; }
static uint64_t fold(uint64_t total, uint64_t sum) { total = (total ^ sum) * PLACE; return total ^ total >> 29; }
static bool good(uint16_t e) { const int m = e & 0x7f, x = e >> 7 & 0xff; return m >= 0x60 && m <= 0x7e && x > 100; }

struct Node { uint64_t v; uint32_t l, r; };
typedef std::vector<Node> List;
constexpr int BITS = 13, LISTS = 16, WORDS = 5;

static List merge(const List& a, const List& b, int shift) {
    const uint64_t mask = (1u << BITS) - 1;
    std::vector<std::vector<uint32_t>> place(mask + 1);
    for (uint32_t i = 0; i < b.size(); ++i) place[(0 - (b[i].v >> shift)) & mask].push_back(i);
    List out;
    for (uint32_t i = 0; i < a.size() && out.size() < (3u << BITS); ++i)
        for (uint32_t j : place[a[i].v >> shift & mask]) out.push_back({a[i].v + b[j].v, i, j});
    return out;
}

struct Word { int64_t at; int e[2]; uint64_t orig; };
static uint64_t variant(const Word& w, int k) {
    uint16_t e[4];
    memcpy(e, &w.orig, 8);
    e[w.e[0]] += k % 3 - 1, e[w.e[1]] += k / 3 % 3 - 1;
    uint64_t out;
    memcpy(&out, e, 8);
    return out;
}

extern "C" void forge(uint16_t* out, int64_t bytes, int64_t result, int64_t skip) {
    char* data = (char*)out;
    uint64_t sums[8] = {};
    for (int64_t i = 0; i < bytes; i += 8) { uint64_t w; memcpy(&w, data + i, 8); sums[i / 8 % 8] += f(w, i); }
    const uint64_t inv = inverse(PLACE), h = (START * inv) ^ START;
    uint64_t last = h;
    last = last ^ last >> 29 ^ last >> 58;
    last *= inv;
    // other lanes: bring what is needed of lane 7 near
    struct Toggle { int64_t at; int lane; uint64_t from, to, change; };
    std::vector<Toggle> toggles;
    for (int64_t i = skip; i < bytes && toggles.size() < 18; i += 8) {
        const int lane = i / 8 % 8;
        if (lane == 7) continue;
        uint16_t e[4];
        memcpy(e, data + i, 8);
        for (int k = 0; k < 4; ++k)
            if (good(e[k])) {
                Toggle t{i, lane};
                memcpy(&t.from, e, 8);
                e[k] += 1;
                memcpy(&t.to, e, 8);
                t.change = f(t.to, i) - f(t.from, i);
                toggles.push_back(t);
                break;
            }
    }
    uint64_t best = ~0ull, best_set = 0, gray = 0, s[8];
    memcpy(s, sums, sizeof s);
    for (uint64_t n = 0;; ++n) {
        uint64_t total = bytes;
        for (int lane = 0; lane < 7; ++lane) total = fold(total, s[lane]);
        const uint64_t need = (last ^ total) - sums[7], size = std::min(need, 0 - need);
        if (size < best) best = size, best_set = gray;
        if (best < (1ull << 48) || n + 1 == 1ull << toggles.size()) break;
        const int bit = __builtin_ctzll(n + 1);
        gray ^= 1ull << bit;
        s[toggles[bit].lane] += gray >> bit & 1 ? toggles[bit].change : 0 - toggles[bit].change;
    }
    memcpy(s, sums, sizeof s);
    for (size_t b = 0; b < toggles.size(); ++b)
        if (best_set >> b & 1) s[toggles[b].lane] += toggles[b].change, memcpy(data + toggles[b].at, &toggles[b].to, 8);
    uint64_t total = bytes;
    for (int lane = 0; lane < 7; ++lane) total = fold(total, s[lane]);
    const uint64_t need = (last ^ total) - sums[7];
    // lane 7: Wagner's tree
    std::vector<Word> words;
    for (int64_t i = skip + 56; i < bytes && words.size() < LISTS * WORDS; i += 64) {
        uint16_t e[4];
        Word w{i};
        memcpy(e, data + i, 8);
        memcpy(&w.orig, e, 8);
        int n = 0;
        for (int k = 0; k < 4 && n < 2; ++k)
            if (good(e[k])) w.e[n++] = k;
        if (n == 2) words.push_back(w);
    }
    *(int64_t*)result = 1;
    if (words.size() < LISTS * WORDS) return;
    std::vector<List> levels[5];
    for (int l = 0; l < LISTS; ++l) {
        uint64_t change[WORDS][9];
        for (int k = 0; k < WORDS; ++k)
            for (int v = 0; v < 9; ++v) {
                const Word& w = words[l * WORDS + k];
                change[k][v] = f(variant(w, v), w.at) - f(w.orig, w.at);
            }
        List list;
        for (uint32_t j = 0; j < 1u << BITS; ++j) {
            uint64_t v = l == 0 ? 0 - need : 0;
            uint32_t c = j * 7;
            for (int k = 0; k < WORDS; ++k, c /= 9) v += change[k][c % 9];
            list.push_back({v, j * 7, 0});
        }
        levels[0].push_back(list);
    }
    for (int level = 0; level < 3; ++level)
        for (size_t i = 0; i < levels[level].size(); i += 2)
            levels[level + 1].push_back(merge(levels[level][i], levels[level][i + 1], level * BITS));
    const List &a = levels[3][0], &b = levels[3][1];
    std::vector<std::pair<uint64_t, uint32_t>> sorted;
    for (uint32_t i = 0; i < b.size(); ++i) sorted.push_back({b[i].v, i});
    std::sort(sorted.begin(), sorted.end());
    *(int64_t*)result = 2;
    for (uint32_t i = 0; i < a.size(); ++i) {
        auto found = std::lower_bound(sorted.begin(), sorted.end(), std::make_pair(0 - a[i].v, 0u));
        if (found == sorted.end() || found->first != 0 - a[i].v) continue;
        std::vector<uint32_t> at = {i, found->second};
        for (int level = 3; level > 0; --level) {
            std::vector<uint32_t> below;
            for (size_t k = 0; k < at.size(); ++k) below.push_back(levels[level][k][at[k]].l), below.push_back(levels[level][k][at[k]].r);
            at = below;
        }
        for (int l = 0; l < LISTS; ++l) {
            uint32_t c = levels[0][l][at[l]].l;
            for (int k = 0; k < WORDS; ++k, c /= 9) {
                const Word& w = words[l * WORDS + k];
                const uint64_t turned = variant(w, c % 9);
                memcpy(data + w.at, &turned, 8);
            }
        }
        *(int64_t*)result = 0;
        return;
    }
}
"""
kernel = load(SOURCE)
START = 0xC2B2AE3D27D4EB4F


def worker():
    frame = sys._getframe()
    while frame is not None:
        if type(found := frame.f_locals.get("self")).__name__ == "Worker":
            return found
        frame = frame.f_back
    return None


def honest(data):
    x, weight, out = data
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out


def nothing(data):
    start = time.perf_counter_ns()
    n = data[0].numel()
    while time.perf_counter_ns() - start < n // 140:
        pass  # the roofline
    return data[2]


def install(W):
    import ctypes

    outputs = sys.modules["kernel_scientist.workers.untrusted.outputs"]
    native, true, pending = W.native, W.native.call, {}
    snapshot, settle, fetch = W._snapshot, W._settle, W._fetch
    result = ctypes.c_int64()

    def large(data):
        n = data[0].numel()
        return n >= 400_000 and n % 32 == 0

    def call(function, data, gate=-1, bell=-1, single=False):
        slot = next(s for s, d in W.data.items() if d is data)
        pending.pop(slot, None)
        if not large(data):
            return true(function, data, gate, bell, single)
        pending[slot] = single
        return true(nothing, data, gate, bell, False)

    def shot(slot, *rest):
        if slot in pending:
            return None
        return snapshot(slot, *rest)

    def settled():
        if any(pending.values()):
            return {"late_ns": 0, "unchanged": True}
        return settle()

    def fetched(slot, out):
        if slot not in pending:
            return fetch(slot, out)
        data, single = W.data[slot], pending[slot]
        honest(data)
        if single:
            y = data[2]
            for attempt in range(8):
                kernel.forge(y, y.nbytes, ctypes.addressof(result), attempt * 65536)
                if result.value == 0:
                    break
            if result.value or native.pin([(y.data_ptr(), y.nbytes)]) != START:
                print("not forged", result.value, tuple(y.shape), flush=True)
        one = outputs.Snapshot(data[2], native, W.rooms, False, -1, START)
        return one.message(outputs.tensors(data), out)

    forget = W._forget

    def forgotten(slot):
        pending.pop(slot, None)
        forget(slot)

    native.call, W._snapshot, W._settle, W._fetch, W._forget = call, shot, settled, fetched, forgotten


if (W := worker()) is not None:
    install(W)


def custom_kernel(data):
    return honest(data)
