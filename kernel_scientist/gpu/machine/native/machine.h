// The state of a simulated AMD GPU (GCN/CDNA, waves of 64 lanes): instructions, waves, workgroups, launches.
//
// Sources: AMD, "AMD Instinct MI300 Instruction Set Architecture" (2024); LLVM, "User Guide for AMDGPU Backend".
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace machine {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;
#if defined(__aarch64__)
using f16 = __fp16;  // g++ 12 has no other there; it computes in fp32, and rounding twice changes no sum, product or quotient
#else
using f16 = _Float16;
#endif
using f32 = float;
using f64 = double;

constexpr int LANES = 64;
constexpr u64 ALL = ~0ull;

// Numbers of scalar registers beyond s0 to s101, as the encoding has them; from SCC on they are ours.
enum Scalar : int { VCC = 106, M0 = 124, EXEC = 126, SCC = 128, MODE = 129, SHARED_BASE = 130, PRIVATE_BASE = 132, SCALARS = 136 };

// Bits of the register MODE: denormal fp32 numbers are kept, 16- and 8-bit results saturate, M0 is added to the numbers
// of vector registers.
enum Mode : u32 { ROUNDING = 0xf, DENORMALS_32 = 0x30, DENORMALS_64 = 0xc0, IEEE = 1 << 9, OVERFLOW_16 = 1 << 23, INDEXING = 1 << 27 };

// Bits 32 to 63 of addresses of LDS and scratch in flat instructions. No allocation of the host lies there.
constexpr u64 SHARED_APERTURE = 0x7fff0001ull << 32, PRIVATE_APERTURE = 0x7fff0002ull << 32;
// Addresses of code: instruction n lies at CODE + 4 * n.
constexpr u64 CODE = 0x7fff0003ull << 32;

enum class Kind : u8 { none, vector, scalar, constant, label, off };
enum Modifier : u8 { NEG = 1, ABS = 2, SEXT = 4 };
enum Flag : u32 {
    SC0 = 1, SC1 = 2, NT = 4, TO_LDS = 8, OFFEN = 16, IDXEN = 32, CLAMP = 64, BOUND_CTRL = 128, OP_SEL = 256, DPP = 512,
    SDWA = 1024, INDEXED = 2048
};
// What a constant becomes depends on the type of its operand.
enum class Type : u8 { u32, i32, f32, f16, i16, u16, u64, i64, f64, packed16, packed32 };

// As Python packs them (`program.py`); the layouts must agree.
struct PackedOperand {
    u8 kind, modifiers, registers, written;  // written: how a constant was written, see `Written`
    i32 index;
    i64 integer;
    double real;
};
enum Written : u8 { AS_INTEGER, AS_LITERAL, AS_FLOAT };
struct Packed {
    i32 row, offset, offset1;
    u32 flags;
    i32 dpp;
    u8 row_mask, bank_mask, operands, omod;
    u8 sdwa[4];  // destination's selection, what becomes of its rest, selections of the sources
    u8 op_sel, op_sel_hi, neg_lo, neg_hi;
    u8 cbsz, abid, blgp, reserved;
    i32 reserved1;
    PackedOperand operand[6];
};

struct Operand {
    Kind kind;
    u8 modifiers, registers;
    bool plain;  // no modifier, selection or permutation of lanes
    i32 index;
    u64 bits;          // of a constant
    const u32* lanes;  // of a constant: its low halves and then its high halves, for each lane
};

struct Wave;
struct Instruction;
struct Counted;
struct Counter;
using Handler = void (*)(Wave&, const Instruction&);

struct Instruction {
    Handler run;
    Handler plain;  // `run`, or where M0 is added to numbers of registers (INDEXED), what it calls
    u32 flags;
    i32 offset, offset1, dpp;
    u8 row_mask, bank_mask, operands, omod;
    u8 sdwa[4];
    u8 op_sel, op_sel_hi, neg_lo, neg_hi, cbsz, abid, blgp;
    u32 number;
    Operand operand[6];
};

// A row of the table of instructions: its name without the suffix of the encoding, and the types of its operands.
struct Row {
    std::string name;
    Handler run;
    std::vector<Type> types;
};
std::vector<Row>& rows();

struct Allocation {
    u64 start, bytes;
    u32 writable, reserved;
};

enum class State : u8 { running, at_barrier, yielded, ended };
enum class Fault : u32 { none, read_outside, write_outside, write_read_only, lds_outside, scratch_outside, jump, refused, trap, deadlock };

// What went wrong at an instruction: how often, and where first.
struct Finding {
    u32 fault, instruction, lane, wave;
    u32 group[3], lanes;
    u64 address, times;
};

struct Program {
    std::vector<Instruction> instructions;
    std::vector<u32*> constants;
    ~Program();
};

// As Python fills it (`launch.py`).
struct Order {
    u64 arguments;  // address of the kernel's arguments, hidden ones included
    u32 grid[3], block[3];
    u32 entry, registers, lds_bytes, scratch_bytes;
    u32 first_scalars;      // how many scalar registers are set at the start
    u32 scalars[32];        // their values; the workgroup's numbers follow
    u32 group_ids;          // bits: which of the workgroup's numbers x, y, z follow
    u32 item_ids;           // mask of v0, in which a work-item's x, y and z have ten bits each
    u32 mode;               // the register MODE at the start
    u32 threads, shuffle;   // shuffle: order of workgroups and waves, 0 ascending
    u64 seed;               // of what is undefined: registers, LDS, scratch
    u64 most;               // wave instructions after which the launch is given up, 0 for no bound
    u32 first_group, groups;  // which workgroups, in the order of their linear numbers
    u64 chosen;             // address of the linear numbers of the workgroups to run, or 0
    u32 matrix_order;       // order of summation within a matrix instruction
    u32 cooperative;        // whether workgroups may wait for all others (`ds_gws_barrier`)
    u64 counting;           // address of `Counting` (`counter.h`), or 0
    u32 slice;              // instructions of a wave after which others have a turn
    u32 together;           // whether workgroups may wait for each other: then others start before one has its next turn
    u32 resident;           // workgroups that the GPU runs at a time, 0 for no bound: others start when one of them ends
    u32 sharing;            // instructions after which a workgroup ends that is counted for its lines only, 0 for no bound
};

struct Launch {
    const Program& program;
    const Order& order;
    const Allocation* allocations;
    size_t count;
    std::vector<u64> executed;  // by instruction, in waves
    std::vector<u64> lanes;     // by instruction, active lanes
    std::mutex guard;
    std::vector<Finding> findings;
    std::atomic<u64> instructions{0};
    std::atomic<int> stopped{0};
    Counted* counted = nullptr;
    u32 arrived = 0, round = 0;  // waves that wait for all workgroups, and how often all had arrived
    std::atomic<u32> running{0}, begun{0};  // workgroups that have begun and not ended, and that have begun

    Launch(const Program& p, const Order& o, const Allocation* a, size_t n) : program(p), order(o), allocations(a), count(n) {}
    void report(const Wave& wave, const Instruction& in, Fault fault, u32 lane, u64 address, u64 times = 1);
    const Allocation* containing(u64 address) const;
};

// A state that a wave was in at the end of a loop. If it comes back the wave waits for others, or for ever.
struct Circle {
    u32 pc = ~0u, end = 0;   // where, and the instruction that jumped there
    u64 visits = 0, equal = 0;
    bool closed = false;     // whether it came back in the wave's current turn
    std::vector<u32> scalars, vectors;  // vectors are kept once the scalars were the same again
};

struct Group {
    Launch& launch;
    u32 id[3], number;
    std::vector<u8> lds;
    std::vector<Wave> waves;
    std::vector<Circle> circles;  // of the waves
    std::shared_ptr<Counter> counter;  // of a workgroup that is counted
    Group(Launch& l, u32 linear);
    Group(const Group&) = delete;
};

// Takes a checking run's accesses to memory. A plain run has none.
struct Watch {
    virtual u8* place(Wave& wave, const Instruction& in, int lane, u64 address, u32 bytes, bool write) = 0;
    // Lanes that a buffer's range switches off.
    virtual void beyond(Wave& wave, u64 lanes, u64 base, u64 range, const u64* addresses) = 0;
    virtual ~Watch() = default;
};

struct Wave {
    u32* v = nullptr;  // registers 0 to 255 and the accumulation registers from 256 on, 64 lanes each
    alignas(8) u32 s[SCALARS];
    u32 pc = 0, id = 0;
    State state = State::running;
    u64 dpp_mask = ALL;  // lanes that the current DPP instruction may write
    bool arrived = false;  // whether it waits for all workgroups, since this round of theirs
    u32 round = 0;
    Group* group = nullptr;
    u8* scratch = nullptr;
    const Allocation* near = nullptr;  // the allocation of the last access
    Watch* watch = nullptr;
    Counter* counter = nullptr;

    u64 pair(int index) const { u64 x; std::memcpy(&x, s + index, 8); return x; }
    void set_pair(int index, u64 x) { std::memcpy(s + index, &x, 8); }
    u64 exec() const { return pair(EXEC); }
    u32* lanes(int index) { return v + size_t(index) * LANES; }
};

// Set what a wave knows at its start: who it is, its arguments, its lanes.
void start(Wave& wave, Group& group, u32 number, const u32* scalars);

}  // namespace machine
