// Loading a program, running a launch, and the functions that Python calls.
#include <cstdlib>
#include <memory>
#include <thread>

#include "counter.h"
#include "denormals.h"
#include "lanes.h"
#include "still.h"

namespace machine {

Program::~Program() {
    for (u32* lanes : constants) std::free(lanes);
}

// The bits of a constant as an operand of a type.
static u64 constant(const PackedOperand& op, Type type) {
    const bool integer = op.written != AS_FLOAT;
    constexpr f64 inverse = 0.15915494309189532;  // 1 / (2 pi), which has an encoding of its own
    const bool turn = op.real == 0.15915494;
    switch (type) {
        case Type::f64:
            if (op.written == AS_LITERAL) return u64(op.integer) << 32;  // a literal is the upper half
            return integer ? u64(op.integer) : std::bit_cast<u64>(turn ? inverse : op.real);
        case Type::u64:
        case Type::i64:
            if (op.written == AS_LITERAL) return type == Type::i64 ? u64(i64(i32(op.integer))) : u64(op.integer);
            return integer ? u64(op.integer) : std::bit_cast<u64>(turn ? inverse : op.real);
        case Type::f16:
        case Type::packed16:
            return integer ? u32(op.integer) : u32(bits(f16(turn ? inverse : op.real)));
        default:
            return integer ? u32(op.integer) : u32(bits(f32(turn ? inverse : op.real)));
    }
}

static const u32* spread(Program& program, u64 bits, Type type) {
    u32* lanes = static_cast<u32*>(std::aligned_alloc(64, 2 * LANES * 4));
    program.constants.push_back(lanes);
    const bool wide = type == Type::f64 || type == Type::u64 || type == Type::i64;
    broadcast(lanes, u32(bits));
    broadcast(lanes + LANES, wide ? u32(bits >> 32) : type == Type::packed32 ? u32(bits) : 0);
    return lanes;
}

static Program* load(const Packed* packed, size_t count) {
    auto program = std::make_unique<Program>();
    program->instructions.resize(count);
    for (size_t n = 0; n < count; ++n) {
        const Packed& from = packed[n];
        Instruction& in = program->instructions[n];
        const Row& row = rows()[from.row];
        in.plain = row.run, in.run = from.flags & INDEXED ? indexed : row.run;
        in.flags = from.flags, in.offset = from.offset, in.offset1 = from.offset1, in.dpp = from.dpp;
        in.row_mask = from.row_mask, in.bank_mask = from.bank_mask, in.operands = from.operands, in.omod = from.omod;
        std::memcpy(in.sdwa, from.sdwa, 4);
        in.op_sel = from.op_sel, in.op_sel_hi = from.op_sel_hi, in.neg_lo = from.neg_lo, in.neg_hi = from.neg_hi;
        in.cbsz = from.cbsz, in.abid = from.abid, in.blgp = from.blgp, in.number = u32(n);
        const bool special = from.flags & (DPP | SDWA | OP_SEL);
        for (int k = 0; k < from.operands; ++k) {
            const PackedOperand& op = from.operand[k];
            const Type type = k < int(row.types.size()) ? row.types[k] : Type::u32;
            Operand& to = in.operand[k];
            to = {Kind(op.kind), op.modifiers, op.registers, !special && !op.modifiers, op.index, 0, nullptr};
            if (to.kind == Kind::constant) {
                to.bits = constant(op, type);
                to.lanes = spread(*program, to.bits, type);
            }
        }
    }
    return program.release();
}

void Launch::report(const Wave& wave, const Instruction& in, Fault fault, u32 lane, u64 address, u64 times) {
    std::lock_guard lock(guard);
    for (Finding& known : findings)
        if (known.fault == u32(fault) && known.instruction == in.number) {
            known.times += times;
            return;
        }
    if (findings.size() >= 1000) return;
    findings.push_back({u32(fault), in.number, lane, wave.id, {wave.group->id[0], wave.group->id[1], wave.group->id[2]}, 1, address, times});
}

static u64 mixed(u64& state) {  // splitmix64
    u64 x = state += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}
// What nobody wrote: numbers that change with the seed.
static void poison(void* to, size_t bytes, u64 seed) {
    u64 state = seed;
    u8* at = static_cast<u8*>(to);
    for (size_t n = 0; n + 8 <= bytes; n += 8) {
        const u64 x = mixed(state);
        std::memcpy(at + n, &x, 8);
    }
}

// Memory of one thread for the waves of a workgroup: registers and scratch.
struct Room {
    u8* memory = nullptr;
    size_t bytes = 0;
    ~Room() { std::free(memory); }
    u8* of(size_t wanted) {
        if (wanted > bytes) {
            std::free(memory);
            memory = static_cast<u8*>(std::aligned_alloc(64, (wanted + 63) / 64 * 64));
            bytes = wanted;
        }
        return memory;
    }
};

Group::Group(Launch& l, u32 linear) : launch(l), number(linear) {
    const u32* grid = l.order.grid;
    id[0] = linear % grid[0], id[1] = linear / grid[0] % grid[1], id[2] = linear / grid[0] / grid[1];
}

void start(Wave& wave, Group& group, u32 number, const u32* scalars) {
    const Order& order = group.launch.order;
    wave.pc = order.entry, wave.id = number, wave.group = &group;
    const u32 first = number * LANES, left = order.block[0] * order.block[1] * order.block[2] - first;
    wave.set_pair(EXEC, left >= LANES ? ALL : (1ull << left) - 1);
    wave.s[SCC] = 0, wave.s[MODE] = order.mode;
    wave.set_pair(SHARED_BASE, SHARED_APERTURE), wave.set_pair(PRIVATE_BASE, PRIVATE_APERTURE);
    u32 next = order.first_scalars;
    std::memcpy(wave.s, scalars, next * 4);
    for (int d = 0; d < 3; ++d)
        if (order.group_ids >> d & 1) wave.s[next++] = group.id[d];
    for (int l = 0; l < LANES; ++l) {
        const u32 t = first + l, x = t % order.block[0], y = t / order.block[0] % order.block[1], z = t / order.block[0] / order.block[1];
        wave.v[l] = (x | y << 10 | z << 20) & order.item_ids;
    }
}

// `sample`: what it is counted for; `place`: its number among those that run.
static void begin(Group& group, Room& room, u8 sample, u32 place) {
    const Order& order = group.launch.order;
    const u32 threads = order.block[0] * order.block[1] * order.block[2], count = (threads + LANES - 1) / LANES;
    const size_t registers = size_t(order.registers) * LANES * 4, scratch = size_t(order.scratch_bytes) * LANES;
    u8* memory = room.of(count * (registers + (scratch + 63) / 64 * 64));
    u64 seed = order.seed * 0x9e3779b97f4a7c15ull + group.number;
    group.lds.resize(order.lds_bytes);
    poison(group.lds.data(), group.lds.size(), seed);
    poison(memory, count * registers, seed + 1);
    group.waves = std::vector<Wave>(count), group.circles = std::vector<Circle>(count);
    if (sample) group.counter = std::make_shared<Counter>(*group.launch.counted, group.launch, sample, place, count);
    for (u32 w = 0; w < count; ++w) {
        Wave& wave = group.waves[w];
        wave.v = reinterpret_cast<u32*>(memory + w * registers);
        wave.scratch = memory + count * registers + w * ((scratch + 63) / 64 * 64);
        poison(wave.scratch, scratch, seed + 2 + w);
        poison(wave.s, sizeof wave.s, seed + 100 + w);
        start(wave, group, w, order.scalars);
        wave.counter = group.counter.get();
    }
}

struct Counts {
    std::vector<u64> executed, lanes;
    u64 total = 0;
    bool busy = false;  // whether a wave ran until its turn was over, and did not only wait
};

// Run a wave until it waits, ends, or has run `most` instructions.
static void step(Wave& wave, Counts& counts, u64 most) {
    const Program& program = wave.group->launch.program;
    const Instruction* first = program.instructions.data();
    const size_t count = program.instructions.size();
    Counter* counter = wave.counter;
    Circle& circle = wave.group->circles[wave.id];
    u64 done = 0;
    set_denormals(wave.s[MODE] & DENORMALS_32);
    while (wave.state == State::running) {
        if (wave.pc >= count) {
            wave.state = State::ended;
            break;
        }
        const Instruction& in = first[wave.pc++];
        ++counts.executed[in.number];
        counts.lanes[in.number] += std::popcount(wave.exec());
        if (counter) counter->step(wave, in);
        in.run(wave, in);
        ++done;
        if (wave.pc <= in.number && wave.state == State::running && closes(circle, wave, in)) wave.state = State::yielded;
        if (done >= most) {
            if (wave.state == State::running) wave.state = State::yielded, counts.busy |= !circle.closed;
            break;
        }
    }
    counts.total += done;
}

constexpr u32 RESIDENT = 256;  // workgroups that may wait for each other start before the first has its second turn
// Waves that are counted take short turns, so that they find in L1 what others brought there, as on the device.
constexpr u64 COUNTED_SLICE = 64;

// Run a workgroup's waves in turns. Returns whether it ended; otherwise it waits for other workgroups.
static bool advance(Group& group, Counts& counts) {
    const u32 count = u32(group.waves.size());
    const u32 shuffle = group.launch.order.shuffle;
    const u64 began = counts.total, slice = group.launch.order.slice, until = group.counter ? counts.total + slice : 0;
    const u64 most = group.counter && group.counter->sample == SHARING ? group.launch.order.sharing : 0;
    for (Circle& circle : group.circles) circle.closed = false;
    for (Wave& wave : group.waves)
        if (wave.state == State::yielded) wave.state = State::running;
    while (true) {
        bool yielded = false;
        for (u32 n = 0; n < count; ++n) {
            Wave& wave = group.waves[shuffle ? count - 1 - n : n];
            if (wave.state == State::running) step(wave, counts, wave.counter ? std::min(COUNTED_SLICE, slice) : slice);
            yielded |= wave.state == State::yielded;
        }
        if (most && group.counter->totals.steps >= most) return true;
        if (yielded && counts.total < until) {
            for (Wave& wave : group.waves)
                if (wave.state == State::yielded) wave.state = State::running;
            continue;
        }
        if (yielded) return false;
        bool waiting = false;
        for (Wave& wave : group.waves)
            if (wave.state == State::at_barrier) wave.state = State::running, waiting = true;
        if (!waiting) return true;
        if (counts.total - began > slice * count) return false;  // its waves may meet at a barrier while they wait for others
    }
}

static void work(Launch& launch, std::atomic<u32>& next, Stillness& stillness, u32 thread) {
    const Order& order = launch.order;
    Counts counts{std::vector<u64>(launch.program.instructions.size()), std::vector<u64>(launch.program.instructions.size())};
    const FloatMode before = float_mode();
    const u32* chosen = reinterpret_cast<const u32*>(order.chosen);
    const u8* samples = launch.counted ? reinterpret_cast<const u8*>(launch.counted->order.samples) : nullptr;
    struct Resident {
        std::unique_ptr<Group> group;
        std::unique_ptr<Room> room;
    };
    std::vector<Resident> waiting;
    auto room = std::make_unique<Room>();
    u64 counted = 0;
    auto over = [&] {
        const u64 sum = launch.instructions.fetch_add(counts.total - counted) + counts.total - counted;
        counted = counts.total;
        if (order.most && sum > order.most) launch.stopped = 1;
        return launch.stopped.load() != 0;
    };
    Quiet quiet;
    bool backwards = false;
    while (!over()) {
        const u32 others = launch.running.fetch_add(1);
        const bool full = order.resident && others >= order.resident;
        const u32 n = full ? next.load() : next.fetch_add(1);
        const bool begins = !full && n < order.groups;
        counts.busy = begins;
        if (begins) {
            ++launch.begun;
            const u32 place = order.shuffle ? order.groups - 1 - n : n;
            auto group = std::make_unique<Group>(launch, chosen ? chosen[place] : order.first_group + place);
            begin(*group, *room, samples ? samples[place] : 0, place);
            if (advance(*group, counts)) --launch.running;
            else {
                waiting.push_back({std::move(group), std::move(room)});
                room = std::make_unique<Room>();
            }
        } else {
            --launch.running;
            if (waiting.empty() && n >= order.groups) break;
            if (waiting.empty()) std::this_thread::yield();
        }
        if (order.together && begins && n + 1 < order.groups && waiting.size() % RESIDENT) continue;
        bool ended = false;
        // Now upwards, now downwards: a chain in which each waits for the next comes to its end in one go.
        for (size_t k = 0, left = waiting.size(); k < left && !over();) {
            const size_t place = backwards ? left - 1 - k : k;
            if (!advance(*waiting[place].group, counts)) ++k;
            else waiting.erase(waiting.begin() + place), --left, --launch.running, ended = true;
        }
        backwards = !backwards;
        if (quiet.pass(ended || counts.busy)) {
            u64 hash = written(launch);
            for (const Resident& one : waiting) hash = state(*one.group, hash);
            if (quiet.compared(hash) && stillness.told(thread, quiet.same)) launch.stopped = 1;
        } else if (quiet.passes == 0) stillness.told(thread, false);
    }
    if (stillness.ended(thread))
        for (Resident& one : waiting) {
            Recorder recorder(*one.group);
            for (int turn = 0; turn < TURNS; ++turn) (void)advance(*one.group, counts);
            recorder.tell();
        }
    over();
    set_float_mode(before);
    std::lock_guard lock(launch.guard);
    for (size_t n = 0; n < counts.executed.size(); ++n) launch.executed[n] += counts.executed[n], launch.lanes[n] += counts.lanes[n];
}

static void run(Launch& launch) {
    launch.executed.resize(launch.program.instructions.size()), launch.lanes.resize(launch.program.instructions.size());
    std::atomic<u32> next{0};
    const u32 count = std::max(1u, std::min(launch.order.threads, launch.order.groups));
    Stillness stillness(count);
    std::vector<std::thread> threads;
    for (u32 n = 1; n < count; ++n) threads.emplace_back([&, n] { work(launch, next, stillness, n); });
    work(launch, next, stillness, 0);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace machine

using namespace machine;

extern "C" {

// The number of the rows, and their names.
int machine_rows() { return int(rows().size()); }
const char* machine_row(int n) { return rows()[n].name.c_str(); }
int machine_packed_bytes() { return sizeof(Packed); }
int machine_order_bytes() { return sizeof(Order); }

void* machine_load(const void* packed, size_t count) { return load(static_cast<const Packed*>(packed), count); }
void machine_free(void* program) { delete static_cast<Program*>(program); }

// Run a launch. `executed` and `lanes` have a number per instruction; `findings` has room for `most`. Returns how many
// findings there are, or -1 if the launch was given up because it ran too many instructions
// or nothing went on. `done`: wave instructions, and workgroups that started.
int machine_run(const void* program, const void* order, const void* allocations, size_t count, u64* executed, u64* lanes, void* findings, size_t most, u64* done) {
    Launch launch(*static_cast<const Program*>(program), *static_cast<const Order*>(order), static_cast<const Allocation*>(allocations), count);
    std::unique_ptr<Counted> counted;
    if (launch.order.counting) {
        counted = std::make_unique<Counted>(*reinterpret_cast<const Counting*>(launch.order.counting));
        launch.counted = counted.get();
    }
    run(launch);
    if (counted) counted->end();
    std::memcpy(executed, launch.executed.data(), launch.executed.size() * 8);
    std::memcpy(lanes, launch.lanes.data(), launch.lanes.size() * 8);
    const size_t found = std::min(most, launch.findings.size());
    std::memcpy(findings, launch.findings.data(), found * sizeof(Finding));
    done[0] = launch.instructions, done[1] = launch.begun;
    return launch.stopped ? -1 - int(found) : int(found);
}
}
