// What must not happen in Python. In the worker: call the kernel between two clock readings, copy what it returned at
// once; loaded, with all its symbols bound, before the kernel's file is read. In the verifier: sweep the caches.
//
// The Python functions are declared by hand: the interpreter that loads this has them, and no headers are needed.
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

extern "C" {
void* PyObject_CallOneArg(void* callable, void* argument);
void* PyObject_Type(void* object);
void Py_DecRef(void* object);
void PyErr_Clear();
unsigned long long PyLong_AsUnsignedLongLong(void* number);
long PySequence_Size(void* sequence);
void* PySequence_GetItem(void* sequence, long index);
void* PyEval_SaveThread();
void PyEval_RestoreThread(void* state);
}

namespace {

inline int64_t clock_ns(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// The processor's own counter: a second clock that no replaced library function can slow down.
inline uint64_t ticks() {
#if defined(__x86_64__)
    uint32_t low, high, core;
    asm volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(core)::"memory");
    return uint64_t(high) << 32 | low;
#elif defined(__aarch64__)
    uint64_t value;
    asm volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
#else
    return 0;
#endif
}

inline int64_t involuntary_switches() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

uint64_t sum_lines(const uint64_t* data, size_t words) {
    uint64_t sum = 0;
    for (size_t i = 0; i < words; i += 8) sum += data[i];
    return sum;
}

constexpr uint64_t PLACE = 0x9e3779b97f4a7c15u, START = 0xc2b2ae3d27d4eb4fu;

// Eight lanes of the processor's widest multiplication (as in XXH3), so that it goes as fast as the memory.
void hash_part(uint64_t* sums, const char* data, size_t from, size_t to) {
    uint64_t lanes[8] = {}, words[8];  // local: nothing that is read through a char* can be one of them
    auto mix = [&](size_t i) {
        for (int lane = 0; lane < 8; ++lane) {
            const uint64_t mixed = words[lane] ^ (PLACE * (i + 8 * lane) + START);
            lanes[lane] += (mixed & 0xffffffffu) * (mixed >> 32) + (words[lane] << 32 | words[lane] >> 32);
        }
    };
    size_t i = from;
    for (; i + 64 <= to; i += 64) {
        memcpy(words, data + i, 64);
        mix(i);
    }
    if (i < to) {
        memset(words, 0, 64);
        memcpy(words, data + i, to - i);
        mix(i);
    }
    for (int lane = 0; lane < 8; ++lane) sums[lane] += lanes[lane];
}

// Tells one output from another; no cryptographic hash. The order of the words does not matter, as each is mixed with
// its place: so it may begin anywhere, and a thread that still writes just ahead of it from the front is overtaken.
uint64_t hash(const char* data, size_t bytes, size_t begin) {
    uint64_t sums[8] = {};
    begin = begin / 64 * 64;
    hash_part(sums, data, begin, bytes);
    hash_part(sums, data, 0, begin);
    uint64_t total = bytes;
    for (uint64_t sum : sums) {
        total = (total ^ sum) * PLACE;
        total ^= total >> 29;
    }
    return total;
}

// Worker: say that one is there, and wait until the verifier goes on.
void handshake(int socket) {
    char byte = 'r';
    if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1 || recv(socket, &byte, 1, 0) != 1) _exit(0);
}

// Read so many bytes. Returns 0; 1 when the time is over; 2 when the other side is gone.
int await(int socket, char* to, size_t count, int64_t deadline_ns) {
    pollfd ready = {socket, POLLIN, 0};
    while (count > 0) {
        const int64_t left = (deadline_ns - clock_ns(CLOCK_MONOTONIC)) / 1000000;
        if (left <= 0) return 1;
        const int ripe = poll(&ready, 1, int(left < 1000000 ? left : 1000000));
        if (ripe < 0 && errno != EINTR) return 2;
        if (ripe <= 0) continue;
        const ssize_t got = recv(socket, to, count, MSG_DONTWAIT);
        if (got <= 0) return 2;
        to += got;
        count -= got;
    }
    return 0;
}

// What it takes to find an output's bytes, as Python objects that were bound before any kernel's file was read.
struct Torch {
    void *tensor, *data_ptr, *numel, *element_size, *is_contiguous, *tuple, *list;
    void *exercise, *material;  // what is called, and on what, to have the code that calls in the caches
};
Torch torch;

bool is(void* object, void* type) {
    void* its = PyObject_Type(object);
    Py_DecRef(its);
    return its == type;
}

unsigned long long ask(void* method, void* tensor) {
    void* answer = PyObject_CallOneArg(method, tensor);
    if (!answer) return PyErr_Clear(), ~0ull;
    const unsigned long long value = PyLong_AsUnsignedLongLong(answer);  // True and False are 1 and 0
    Py_DecRef(answer);
    return value;
}

constexpr int64_t MOST_PLACES = 64;
constexpr int64_t SHOWN = 16;  // pieces out of a GPU's memory: each is a copy of its own, some 10 us
constexpr int EXERCISES = 2;

// Worker, on a GPU: the keys that came when it was roused, and what it says as it stands ready (`lab_commit`).
std::vector<uint64_t> keys;
uint64_t committed;

// Philox 4x32-10: sixteen bytes that nobody guesses who does not know the key and half of the counter. The worker's
// `masks.py` computes the same on its GPU.
inline void pad(uint64_t place, uint64_t key, uint64_t secret, uint32_t* out) {
    uint32_t c[4] = {uint32_t(place), uint32_t(place >> 32), uint32_t(secret), uint32_t(secret >> 32)};
    uint32_t low = uint32_t(key), high = uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t(0xd2511f53u) * c[0], b = uint64_t(0xcd9e8d57u) * c[2];
        const uint32_t next[4] = {
            uint32_t(b >> 32) ^ c[1] ^ low, uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ high, uint32_t(a)};
        memcpy(c, next, sizeof c);
        low += 0x9e3779b9u, high += 0xbb67ae85u;
    }
    memcpy(out, c, sizeof c);
}

struct Place {
    const char* start;
    size_t size;
};

void exercise() {
    if (!torch.exercise) return;
    void* nothing = PyObject_CallOneArg(torch.exercise, torch.material);
    if (nothing) Py_DecRef(nothing);
    else PyErr_Clear();
}

// A GPU's runtime (`runtime.py`): CUDA's or ROCm's, whose functions take the same arguments. All null on a CPU.
struct Gpu {
    int (*create)(void** event);
    int (*record)(void* event, void* stream);
    int (*elapsed)(float* ms, void* start, void* end);
    int (*synchronize)();  // the whole device, whatever the stream
    int (*copy)(void* to, const void* from, size_t bytes, int kind);
};
Gpu gpu;
void *start_event, *end_event;
constexpr int WHEREVER = 4;  // cudaMemcpyDefault, hipMemcpyDefault: the runtime knows where addresses lie

// Wait until the whole device is idle; the kernel's other threads may go on meanwhile, as they might in torch's own.
int synchronize() {
    if (!gpu.synchronize) return 0;
    void* state = PyEval_SaveThread();
    const int error = gpu.synchronize();
    PyEval_RestoreThread(state);
    return error;
}

// Find where the tensors of an output lie: one, or a list or tuple of them, each without gaps.
bool find(void* output, std::vector<Place>& places) {
    if (is(output, torch.tensor)) {
        if (ask(torch.is_contiguous, output) != 1) return false;
        const size_t size = ask(torch.numel, output) * ask(torch.element_size, output);
        places.push_back({(const char*)ask(torch.data_ptr, output), size});
        return places.back().start || !size;
    }
    if (!is(output, torch.tuple) && !is(output, torch.list)) return false;
    const long count = PySequence_Size(output);
    for (long i = 0; i < count; ++i) {
        void* item = PySequence_GetItem(output, i);
        const bool found = item && is(item, torch.tensor) && find(item, places);
        if (item) Py_DecRef(item);
        if (!found) return false;
    }
    return true;
}

uint64_t digest(const Place* places, int64_t count, double anywhere) {
    uint64_t total = START;
    for (int64_t i = 0; i < count; ++i) {
        const size_t size = places[i].size;
        std::unique_ptr<char[]> copy;
        if (gpu.copy) {
            copy.reset(new char[size]);
            gpu.copy(copy.get(), places[i].start, size, WHEREVER);
        }
        total = (total ^ hash(gpu.copy ? copy.get() : places[i].start, size, size_t(anywhere * size))) * PLACE + i;
    }
    return total;
}

// As `sched_setattr` takes it (its first version, which every kernel knows); glibc declares it from 2.41 on.
struct Scheduling {
    uint32_t size = sizeof(Scheduling), policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};

enum Hearing { IN_TURN, SOON, FIRST };

// Verifier: this thread comes before others while it listens: by real-time priority, or, where only root may have that,
// by a short time slice, with which Linux lets a thread that wakes interrupt others (6.12 and newer). Else a pool of
// the kernel's that spins on every core after its work keeps it from hearing the bell for 100 us and more, and work
// that is hidden there passes.
class Urgent {
  public:
    Urgent() {
        if (!get(usual)) return;
        Scheduling first = {}, soon = usual, now = {};
        first.policy = SCHED_FIFO, first.priority = sched_get_priority_min(SCHED_FIFO);
        soon.runtime_ns = SLICE_NS;
        if (usual.policy == SCHED_FIFO || usual.policy == SCHED_RR) {
            hearing = FIRST;
        } else if (set(first)) {
            hearing = FIRST, changed = true;
        } else if (set(soon)) {
            changed = true;
            if (get(now) && now.runtime_ns == SLICE_NS) hearing = SOON;  // older systems take it and do nothing
        }
    }
    ~Urgent() {
        if (changed) set(usual);
    }
    Urgent(const Urgent&) = delete;
    Hearing hearing = IN_TURN;

  private:
    static constexpr uint64_t SLICE_NS = 100000;  // the shortest there is
    static bool get(Scheduling& found) { return syscall(SYS_sched_getattr, 0, &found, sizeof found, 0) == 0; }
    static bool set(Scheduling wanted) { return syscall(SYS_sched_setattr, 0, &wanted, 0) == 0; }
    Scheduling usual;
    bool changed = false;
};

// How many threads this process has; 0 where the system does not say.
int64_t threads() {
    struct stat found;
    return stat("/proc/self/task", &found) ? 0 : int64_t(found.st_nlink) - 2;  // one folder for each
}

void say(int socket, const void* words, size_t size) {
    if (send(socket, words, size, MSG_NOSIGNAL) != ssize_t(size)) _exit(0);
}

void hear(int socket, void* words, size_t size) {
    if (size && recv(socket, words, size, MSG_WAITALL) != ssize_t(size)) _exit(0);
}

void hear_keys(int socket) {
    int64_t count = 0;
    hear(socket, &count, sizeof count);
    keys.resize(count);
    hear(socket, keys.data(), count * sizeof keys[0]);
}

// Verifier: whether they could be sent.
bool tell_keys(int socket, const uint64_t* told, int64_t count) {
    const ssize_t size = ssize_t(count * sizeof *told);
    return send(socket, &count, sizeof count, MSG_NOSIGNAL) == sizeof count &&
           (!size || send(socket, told, size, MSG_NOSIGNAL) == size);
}

struct Line {  // a piece of an output, as it was when the bell had rung
    int64_t place, offset, size;
    char bytes[64];
};

// Worker: hand over the pieces of an output that the verifier names now, out of a GPU's memory, where it cannot look.
void show(int socket, const std::vector<Place>& places) {
    int64_t count = 0;
    hear(socket, &count, sizeof count);
    std::vector<Line> lines(count);
    hear(socket, lines.data(), count * sizeof(Line));
    for (Line& line : lines) gpu.copy(line.bytes, places[line.place].start + line.offset, line.size, WHEREVER);
    say(socket, lines.data(), count * sizeof(Line));
}

// Verifier: choose pieces of an output of which nobody can know beforehand; all of them, where no more are wanted.
// Returns how many.
int64_t choose(const Place* places, size_t total, uint64_t seed, Line* lines, int64_t wanted) {
    const bool all = total <= size_t(wanted);
    if (all) wanted = int64_t(total);
    for (int64_t i = 0; i < wanted; ++i) {
        seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u + PLACE;  // as splitmix64
        size_t line = all ? size_t(i) : (seed ^ seed >> 31) % total;
        int64_t place = 0;
        for (; line >= (places[place].size + 63) / 64; ++place) line -= (places[place].size + 63) / 64;
        lines[i] = {place, int64_t(line * 64), int64_t(std::min<size_t>(64, places[place].size - line * 64)), {}};
    }
    return wanted;
}

// Verifier: have the worker show pieces of an output in a GPU's memory. Returns as `await`; 3 for other pieces.
int ask_for(int socket, Line* lines, int64_t count, int64_t deadline) {
    std::vector<Line> shown(count);
    if (send(socket, &count, sizeof count, MSG_NOSIGNAL) != sizeof count) return 2;
    const ssize_t size = ssize_t(count * sizeof(Line));
    if (send(socket, lines, size, MSG_NOSIGNAL) != size) return 2;
    if (const int failed = await(socket, (char*)shown.data(), size, deadline)) return failed;
    for (int64_t i = 0; i < count; ++i) {
        if (shown[i].place != lines[i].place || shown[i].offset != lines[i].offset || shown[i].size != lines[i].size)
            return 3;
        lines[i] = shown[i];
    }
    return 0;
}

}  // namespace

extern "C" {

struct Stamps {
    int64_t start_ns, end_ns;        // CLOCK_MONOTONIC
    uint64_t start_ticks, end_ticks; // the processor's counter
    int64_t cpu_ns;                  // CPU time of all threads from just before the call to just after it
    int64_t switches;                // involuntary context switches meanwhile
    uint64_t digest;                 // of the output
    int64_t pinned;                  // whether that was found and sent
    int64_t event_ns;                // between two events of a GPU around the call; 0 where they say nothing
    int64_t error;                   // what its runtime said when all of the call had ended; 0: nothing
};

void lab_bind(void* const* objects) { memcpy(&torch, objects, sizeof torch); }

// Worker: tell the functions of a GPU's runtime. Returns what the runtime says to the first use of it.
int lab_bind_gpu(void* const* functions) {
    memcpy(&gpu, functions, sizeof gpu);
    if (const int error = gpu.create(&start_event)) return error;
    return gpu.create(&end_event);
}

int lab_gpu_synchronize() { return gpu.synchronize(); }

int lab_gpu_copy(void* to, const void* from, size_t bytes) { return gpu.copy(to, from, bytes, WHEREVER); }

// Worker: touch every page of inputs before they are written, for all contestants alike: who did it for himself would be
// quicker, as the processor knows their addresses then.
void touch(void* data) {
    const bool many = is(data, torch.tuple) || is(data, torch.list);
    for (long i = 0; i < (many ? PySequence_Size(data) : 1); ++i) {
        void* item = many ? PySequence_GetItem(data, i) : data;
        if (item && is(item, torch.tensor)) {
            const size_t size = ask(torch.numel, item) * ask(torch.element_size, item);
            const volatile char* bytes = (const char*)ask(torch.data_ptr, item);
            for (size_t at = 0; bytes && at < size; at += 4096) (void)bytes[at];
        }
        if (many && item) Py_DecRef(item);
    }
}

// Worker: the first call of a row stands before the gate while the inputs are written; roused, it gets the code that
// makes a call back into the caches, which waiting drove out, and says that it is ready. The last one rings the bell
// and waits until it is heard, each a single byte on the socket. What lies between gate and bell on the verifier's
// clock is the row, two wake-ups, and for one call nothing else. If it did not wait, the verifier might, for the very
// core that the worker goes on using. Then it says where the outputs of the row lie (how many places, and each), waits
// until the verifier has looked there, and sends a digest, if `pin` is set that of the one output, read from `anywhere`
// (0 to 1) on. After an exception there are no places; -1 says that they cannot be told, and for one call that the
// digest is left to the caller.
//
// On a GPU the device is idle when the clock starts and idle when it stops, by the runtime's word for all streams.
void* lab_call(void* kernel, void* data, Stamps* stamps, int gate, int bell, int pin, double anywhere) {
    synchronize();
    if (gate >= 0) {
        if (!gpu.copy) touch(data);
        handshake(gate);
        if (gpu.copy) hear_keys(gate);
        for (int i = 0; i < EXERCISES; ++i) exercise();
        if (gpu.copy) say(gate, &committed, sizeof committed);
        handshake(gate);
        exercise();
    }
    const int64_t switches = involuntary_switches(), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const int64_t start = clock_ns(CLOCK_MONOTONIC);
    const uint64_t start_ticks = ticks();
    if (gpu.record) gpu.record(start_event, nullptr);
    void* output = PyObject_CallOneArg(kernel, data);
    if (gpu.record) gpu.record(end_event, nullptr);
    const int error = synchronize();
    const uint64_t end_ticks = ticks();
    const int64_t end = clock_ns(CLOCK_MONOTONIC);
    if (bell >= 0) handshake(bell);
    const int64_t cpu_spent = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu, switched = involuntary_switches() - switches;
    static std::vector<Place> places;
    static bool found;
    if (gate >= 0 || bell >= 0 && pin) places.clear(), found = true;
    if (found && output) found = find(output, places) && places.size() <= MOST_PLACES;
    if (!output) places.clear();
    uint64_t pinned = 0;
    if (bell >= 0) {
        const int64_t count = found ? int64_t(places.size()) : -1;
        say(bell, &count, sizeof count);
        if (count > 0) say(bell, places.data(), count * sizeof(Place));
        char byte;
        if (count > 0 && gpu.copy) show(bell, places);
        if (count > 0 && recv(bell, &byte, 1, 0) != 1) _exit(0);
        pinned = digest(places.data(), pin ? count : 0, anywhere);
        if (found || !pin) say(bell, &pinned, sizeof pinned);
    }
    float ms = 0;  // ROCm's events may read zero or a little less for very short intervals
    if (!gpu.elapsed || error || gpu.elapsed(&ms, start_event, end_event) || !(ms > 0)) ms = 0;
    const int64_t event = int64_t(double(ms) * 1e6);
    *stamps = {start, end, start_ticks, end_ticks, cpu_spent, switched, pinned, found, event, error};
    return output;
}

// Worker, on a GPU: a key of those that came when it was roused.
uint64_t lab_key(int64_t number) { return size_t(number) < keys.size() ? keys[number] : 0; }

int64_t lab_keys() { return keys.size(); }

// Worker, on a GPU: what it says, as it stands ready, of the sweep that it has made.
void lab_commit(uint64_t word) { committed = word; }

// Make groups of four words unreadable without both keys, or readable again.
void lab_mask(uint32_t* words, size_t groups, uint64_t key, uint64_t secret) {
    uint32_t own[4];
    for (size_t i = 0; i < groups; ++i) {
        pad(i, key, secret, own);
        for (int k = 0; k < 4; ++k) words[4 * i + k] ^= own[k];
    }
}

// Worker: ring for a row that an exception broke off.
void lab_ring(int bell) {
    handshake(bell);
    const uint64_t nothing[2] = {0, 0};
    say(bell, nothing, sizeof nothing);
}

// Verifier: read pieces of another process's memory. Returns whether they could be read. Of a small output all is read,
// from somewhere nobody knows beforehand on, so that a thread that still writes just ahead of it is overtaken.
int lab_peek(int pid, const Place* places, Line* lines, int count) {
    constexpr size_t WHOLE = 256 << 10;  // so much in one go takes less time than 256 pieces of it
    constexpr int AT_ONCE = 512;
    int64_t last = -1;
    for (int i = 0; i < count; ++i) last = std::max(last, lines[i].place);
    size_t total = 0;
    for (int64_t p = 0; p <= last && total <= WHOLE; ++p) total += std::min(places[p].size, WHOLE + 1);
    if (total <= WHOLE && total > 0 && last < MOST_PLACES) {
        static thread_local std::vector<char> bytes(WHOLE);
        const size_t begin = (ticks() * PLACE >> 32) % total;
        iovec here[] = {{bytes.data() + begin, total - begin}, {bytes.data(), begin}}, there[2 * MOST_PLACES];
        int parts = 0;
        for (const bool wrapped : {false, true}) {
            size_t before = 0;
            for (int64_t p = 0; p <= last; before += places[p++].size) {
                const size_t low = std::max(before, wrapped ? 0 : begin);
                const size_t high = std::min(before + places[p].size, wrapped ? begin : total);
                if (low < high) there[parts++] = {(void*)(places[p].start + (low - before)), high - low};
            }
        }
        if (process_vm_readv(pid, here, 2, there, parts, 0) != ssize_t(total)) return 0;
        for (int i = 0; i < count; ++i) {
            size_t before = 0;
            for (int64_t p = 0; p < lines[i].place; ++p) before += places[p].size;
            memcpy(lines[i].bytes, bytes.data() + before + lines[i].offset, lines[i].size);
        }
        return 1;
    }
    for (int first = 0; first < count; first += AT_ONCE) {
        iovec here[AT_ONCE], there[AT_ONCE];
        const int n = std::min(AT_ONCE, count - first);
        ssize_t wanted = 0;
        for (int i = 0; i < n; ++i) {
            Line& line = lines[first + i];
            here[i] = {line.bytes, size_t(line.size)};
            there[i] = {(void*)(places[line.place].start + line.offset), size_t(line.size)};
            wanted += line.size;
        }
        if (process_vm_readv(pid, here, n, there, n, 0) != wanted) return 0;
    }
    return 1;
}

// Verifier: whether another process's memory still holds these pieces.
int lab_lasts(int pid, const Place* places, const Line* lines, int count) {
    std::vector<Line> again(lines, lines + count);
    if (!lab_peek(pid, places, again.data(), count)) return 0;
    return !memcmp(again.data(), lines, count * sizeof(Line));
}

// Verifier: whether pieces of outputs that lay at `places` are those of what was handed over later, from the first on.
int lab_fit(const Place* places, const Place* later, int first, int buffers, const Line* lines, int count) {
    for (int i = 0; count > 0 && i < buffers; ++i)
        if (first + i >= MOST_PLACES || places[first + i].size != later[i].size) return 0;
    for (int i = 0; i < count; ++i) {
        const Line& line = lines[i];
        const int64_t place = line.place - first;
        if (place < 0 || place >= buffers) continue;
        if (memcmp(later[place].start + line.offset, line.bytes, line.size)) return 0;
    }
    return 1;
}

// Verifier: rouse the worker that stands before the gate, open the gate when it is ready, wait for the bell; then read
// pieces of the outputs that nobody could know, out of the worker's memory (`pid`; 0: not; -1: it lies on a GPU, and the
// worker shows them). It waits then, until `lab_release`. By this process's clock, in window: {roused, opened, rung,
// told where (without pieces: see there; shown: when they came), CPU time of the worker's process (`clock`; 0: none) as
// it was roused}. `told`: the keys that a GPU's worker gets as it is roused. `sums`: {a digest, on a GPU what the worker
// committed itself to as it was ready}. `sizes`: {places, lines wanted in, got out}. Returns 0; 1 when the time is over;
// 2 when the worker is gone; 3 when it says what cannot be.
int lab_row(int socket, int64_t limit_ms, int64_t* window, uint64_t* sums, int pid, uint64_t seed, Place* places,
            Line* lines, int64_t* sizes, const uint64_t* told, int64_t keys, int clock) {
    const Urgent urgent;
    char byte = 'g';
    const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + limit_ms * 1000000;
    window[4] = clock ? clock_ns(clockid_t(clock)) : 0;
    for (int step = 0; step < 2; ++step) {
        window[step] = clock_ns(CLOCK_MONOTONIC);
        if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return 2;
        if (step == 0 && pid < 0) {
            if (!tell_keys(socket, told, keys)) return 2;
            if (const int failed = await(socket, (char*)&sums[1], sizeof *sums, deadline)) return failed;
        }
        if (const int failed = await(socket, &byte, 1, deadline)) return failed;
    }
    window[2] = clock_ns(CLOCK_MONOTONIC);
    if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return 2;
    int64_t count = 0;
    if (const int failed = await(socket, (char*)&count, sizeof count, deadline)) return failed;
    if (count < -1 || count > MOST_PLACES) return 3;
    if (count > 0)
        if (const int failed = await(socket, (char*)places, count * sizeof(Place), deadline)) return failed;
    window[3] = clock_ns(CLOCK_MONOTONIC);
    const int64_t wanted = sizes[1];
    sizes[0] = std::max<int64_t>(count, 0), sizes[1] = 0;
    size_t total = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (places[i].size > size_t(1) << 50) return 3;
        total += (places[i].size + 63) / 64;
    }
    if (pid < 0 && count > 0) {
        const int64_t asked = total > 0 ? choose(places, total, seed, lines, std::min(wanted, SHOWN)) : 0;
        if (const int failed = ask_for(socket, lines, asked, deadline)) return failed;
        window[3] = clock_ns(CLOCK_MONOTONIC);
        sizes[1] = asked;
    }
    if (pid > 0 && total > 0) {
        const int64_t chosen = choose(places, total, seed, lines, wanted);
        if (!lab_peek(pid, places, lines, int(chosen))) return 3;
        sizes[1] = chosen;
    }
    return 0;
}

// Verifier: let the worker of a row go on, get the digest. Returns as `lab_row`.
int lab_release(int socket, int64_t limit_ms, int64_t* window, uint64_t* sums, const int64_t* sizes) {
    const char byte = 'g';
    const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + limit_ms * 1000000;
    if (sizes[0] > 0 && send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return 2;
    const int failed = await(socket, (char*)sums, sizeof *sums, deadline);
    if (sizes[1] == 0) window[3] = clock_ns(CLOCK_MONOTONIC);
    return failed;
}

// Worker: the digest of what lies at all these places, sent at once if there is a socket.
uint64_t lab_pin(int socket, const Place* places, int count, double anywhere) {
    const uint64_t total = digest(places, count, anywhere);
    if (socket >= 0) say(socket, &total, sizeof total);
    return total;
}

// CPU time of every thread but the calling one.
int64_t lab_others_cpu_ns() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID); }

uint64_t lab_ticks() { return ticks(); }

// How soon this thread hears when it listens (`Hearing`).
int lab_hearing() { return Urgent().hearing; }

// Wait until no other thread, if there is one, works any more; return the CPU time that they spent meanwhile, beyond a
// grace: an OpenMP pool spins on for a moment after its region, and later than that when it has to wait for its core.
int64_t lab_settle(int64_t window_ns, int64_t limit_ns, int64_t grace_ns) {
    if (threads() == 1) return 0;
    const timespec window = {0, long(window_ns)};
    const int64_t start = lab_others_cpu_ns();
    int64_t before = start;
    for (int64_t waited = 0; waited < limit_ns; waited += window_ns) {
        nanosleep(&window, nullptr);
        const int64_t now = lab_others_cpu_ns();
        if (now - before < window_ns / 10) break;
        before = now;
    }
    const int64_t spent = lab_others_cpu_ns() - start;
    return spent > grace_ns ? spent : 0;
}

// Write past the caches: what is written here is not in them when the kernel reads it.
void lab_stream(char* to, const char* from, size_t bytes) {
    size_t i = 0;
#if defined(__SSE2__)
    for (; i < bytes && (uintptr_t(to + i) & 15); ++i) to[i] = from[i];
    for (; i + 16 <= bytes; i += 16) _mm_stream_si128((__m128i*)(to + i), _mm_loadu_si128((const __m128i*)(from + i)));
    _mm_sfence();
#endif
    memcpy(to + i, from + i, bytes - i);
}

void lab_stream_fill(char* to, int byte, size_t bytes) {
    char line[4096];
    memset(line, byte, sizeof line);
    for (size_t i = 0; i < bytes; i += sizeof line) lab_stream(to + i, line, std::min(bytes - i, sizeof line));
}

// Sweep the caches of these cores by reading: what was dirty is written back now, and nothing dirty of ours is left
// behind. One thread per core, because a core's own caches are swept by that core only.
uint64_t lab_sweep(const uint64_t* data, size_t words, const int* cores, int count) {
    std::vector<uint64_t> sums(count);
    std::vector<std::thread> team;
    const size_t share = words / count / 8 * 8;
    for (int t = 0; t < count; ++t)
        team.emplace_back([&, t] {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(cores[t], &set);
            sched_setaffinity(0, sizeof set, &set);
            sums[t] = sum_lines(data + t * share, share);
        });
    for (auto& member : team) member.join();
    uint64_t total = 0;
    for (uint64_t sum : sums) total += sum;
    return total;
}

}  // extern "C"
