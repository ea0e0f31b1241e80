// HIP's names, for kernels that a test compiles for the host: one fiber per lane, workgroups one after the other.
// A fiber runs until it reaches a barrier or an exchange. Every lane of a wave must take part in an exchange.
#pragma once
#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __builtin_amdgcn_cvt_f32_fp8 host_lanes::from_e4m3fnuz

struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host_lanes {
constexpr int WAVE = 64;
constexpr size_t STACK = 1 << 16;

struct Lane {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    dim3 index;
    int exchanges;
    bool ended;
};
struct Barrier {
    int members = 0, arrived = 0, passed = 0;
};
inline std::vector<std::unique_ptr<Lane>> lanes;
inline std::vector<Barrier> waves;
inline Barrier group;
inline std::function<void()> body;
inline ucontext_t scheduler;
inline int running, progress;
inline unsigned long values[2][1024];  // what lanes exchange, by turns

inline void pass(Barrier& barrier) {
    if (barrier.members && barrier.arrived < barrier.members) return;
    barrier.arrived = 0, barrier.passed++, progress++;
}
inline void wait(Barrier& barrier) {
    int passed = barrier.passed, lane = running;
    barrier.arrived++;
    pass(barrier);
    while (barrier.passed == passed) swapcontext(&lanes[lane]->context, &scheduler);
}
inline void run_lane() {
    body();
    for (Barrier* barrier : {&waves[running / WAVE], &group}) barrier->members--, pass(*barrier);
    lanes[running]->ended = true, progress++;
}
inline void start(int number) {
    if (number == (int)lanes.size()) lanes.push_back(std::make_unique<Lane>());
    Lane& lane = *lanes[number];
    lane.index = dim3(number % blockDim.x, number / blockDim.x % blockDim.y, number / blockDim.x / blockDim.y);
    lane.exchanges = 0, lane.ended = false;
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.get(), lane.context.uc_stack.ss_size = STACK;
    lane.context.uc_link = &scheduler;
    makecontext(&lane.context, run_lane, 0);
    waves[number / WAVE].members++, group.members++;
}
inline void run_group(int count) {
    waves.assign((count + WAVE - 1) / WAVE, Barrier{}), group = Barrier{};
    for (int number = 0; number < count; number++) start(number);
    for (int before = -1; group.members;) {
        if (progress == before) std::fprintf(stderr, "lanes wait for each other for ever\n"), std::abort();
        before = progress;
        for (running = 0; running < count; running++) {
            if (lanes[running]->ended) continue;
            threadIdx = lanes[running]->index;
            swapcontext(&scheduler, &lanes[running]->context);
        }
    }
}
template <typename... P>
auto launched(void (*kernel)(P...), dim3 grid, dim3 block) {
    return [=](P... arguments) {
        gridDim = grid, blockDim = block;
        body = [=] { kernel(arguments...); };
        for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
            for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
                for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) run_group(block.x * block.y * block.z);
    };
}

inline float from_e4m3fnuz(unsigned int word, int byte) {
    unsigned int x = word >> 8 * byte & 255, exponent = x >> 3 & 15;
    if (x == 128) return NAN;
    float size = exponent ? std::ldexp(8 + (x & 7), (int)exponent - 11) : std::ldexp(x & 7, -10);
    return x & 128 ? -size : size;
}
}  // namespace host_lanes

inline void __syncthreads() { host_lanes::wait(host_lanes::group); }

template <typename T>
T __shfl_xor(T x, int mask) {
    using namespace host_lanes;
    int lane = running;
    unsigned long* turn = values[lanes[lane]->exchanges++ % 2];
    std::memcpy(&turn[lane], &x, sizeof x);
    wait(waves[lane / WAVE]);
    std::memcpy(&x, &turn[lane ^ mask], sizeof x);
    return x;
}
inline unsigned int __float_as_uint(float x) { return std::bit_cast<unsigned int>(x); }
inline float __uint_as_float(unsigned int x) { return std::bit_cast<float>(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

#define TORCH_CHECK(condition, ...) \
    if (!(condition)) std::abort()
namespace torch {
struct Tensor {
    void* data;
    long dims, sizes[6];
    long size(int dim) const { return sizes[dim]; }
    long numel() const {
        long count = 1;
        for (int dim = 0; dim < dims; dim++) count *= sizes[dim];
        return count;
    }
    void* data_ptr() const { return data; }
    template <typename T>
    T* data_ptr() const {
        return (T*)data;
    }
};
}  // namespace torch
