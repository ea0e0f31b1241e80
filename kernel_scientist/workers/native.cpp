// The native part of the harness. A worker loads it before it reads the kernel's file; the evaluator loads it too.
//
// Worker: waits at the start barrier, makes a row of calls between two clock readings, signals completion. Evaluator:
// opens the barrier, waits for the signal on its own clock, and stops the worker's other threads from outside.
//
// CPython's functions are declared by hand: the interpreter that loads this has them, and no headers are needed.
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
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
void* PyList_New(long size);
int PyList_SetItem(void* list, long index, void* item);  // takes over the reference
void* PyEval_SaveThread();
void PyEval_RestoreThread(void* state);
}

namespace {

inline int64_t clock_ns(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

inline int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

inline int64_t involuntary_switches() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

// The first bytes of the shared memory. A worker at the barrier spins: a wake-up would cost a random time of tens of
// microseconds.
struct Barrier {
    std::atomic<uint32_t> alive;  // counts while the worker waits
    std::atomic<uint32_t> state;
};
enum State : uint32_t { CLOSED, OPEN, SETTLE, SETTLED };

struct Place {
    const char* start;
    size_t size;
};
constexpr int64_t MOST_PLACES = 256;
constexpr int64_t NO_PLACES = -1, RAISED = -2;  // in place of their number

void say(int socket, const void* data, size_t size) {
    if (send(socket, data, size, MSG_NOSIGNAL) != ssize_t(size)) _exit(0);
}

void hear(int socket, void* data, size_t size) {
    for (ssize_t got = 0; size; data = (char*)data + got, size -= got) {
        got = recv(socket, data, size, MSG_WAITALL);
        if (got < 0 && errno == EINTR) got = 0;
        else if (got <= 0) _exit(0);
    }
}

using More = int64_t (*)();

// Whether there is still time: until the deadline, or until that which a positive answer of `more` (in ms) sets.
bool in_time(int64_t& deadline_ns, More more) {
    if (now_ns() < deadline_ns) return true;
    const int64_t more_ms = more();
    if (more_ms > 0) deadline_ns = now_ns() + more_ms * 1000000;
    return more_ms > 0;
}

// Read so many bytes. Returns 0; 1 when the time is over; 2 when the other side is gone.
int await(int socket, void* data, size_t count, int64_t deadline_ns, More more) {
    char* to = (char*)data;
    pollfd ready = {socket, POLLIN, 0};
    while (count > 0) {
        if (!in_time(deadline_ns, more)) return 1;
        const int64_t left = (deadline_ns - now_ns()) / 1000000 + 1;
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

// Python objects by which the bytes of an output are found, bound before any kernel's file is read.
struct Bound {
    void *tensor, *data_ptr, *numel, *element_size, *is_contiguous, *tuple, *list;
};
Bound bound;

bool is(void* object, void* type) {
    void* actual = PyObject_Type(object);
    Py_DecRef(actual);
    return actual == type;
}

unsigned long long ask(void* method, void* argument) {
    void* answer = PyObject_CallOneArg(method, argument);
    if (!answer) return PyErr_Clear(), ~0ull;
    const unsigned long long value = PyLong_AsUnsignedLongLong(answer);  // True and False are 1 and 0
    Py_DecRef(answer);
    return value;
}

// Find where the tensors of an output lie: one, or a list or tuple of them, each contiguous.
bool find(void* output, std::vector<Place>& places) {
    if (is(output, bound.tensor)) {
        if (ask(bound.is_contiguous, output) != 1) return false;
        const size_t size = ask(bound.numel, output) * ask(bound.element_size, output);
        places.push_back({(const char*)ask(bound.data_ptr, output), size});
        return (places.back().start || !size) && places.size() <= size_t(MOST_PLACES);
    }
    if (!is(output, bound.tuple) && !is(output, bound.list)) return false;
    for (long i = 0, count = PySequence_Size(output); i < count; ++i) {
        void* item = PySequence_GetItem(output, i);
        const bool found = item && is(item, bound.tensor) && find(item, places);
        if (item) Py_DecRef(item);
        if (!found) return false;
    }
    return true;
}

// A GPU's runtime (`runtime.Runtime`): CUDA's or ROCm's, whose functions take the same arguments. All null on a CPU.
struct Gpu {
    int (*create)(void** event);
    int (*record)(void* event, void* stream);
    int (*elapsed)(float* ms, void* start, void* end);
    int (*synchronize)();  // the whole device, whatever the stream
    int (*copy)(void* to, const void* from, size_t bytes, int kind);
    int (*copy_in_order)(void* to, const void* from, size_t bytes, int kind, void* stream);  // the host goes on
    int (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared_bytes,
                  void* stream, void** arguments, void** extra);  // blocks in three dimensions, then threads
    int (*release)();  // makes lines that persist in its cache evictable; null where there is no such thing
};
Gpu gpu;
void *before_event, *start_event, *end_event;

// A kernel that keeps the whole GPU busy for a while (`delay.py`).
struct Delay {
    void* function;
    int64_t blocks, threads, shared_bytes;
    void** arguments;
};
Delay delay;
constexpr size_t PIECES = 8;
constexpr int ANY_DIRECTION = 4;  // cudaMemcpyDefault, hipMemcpyDefault: the runtime knows where addresses lie

// Wait until the whole device is idle; the kernel's other threads may go on meanwhile, as they might in torch's own.
int synchronize() {
    if (!gpu.synchronize) return 0;
    void* state = PyEval_SaveThread();
    const int error = gpu.synchronize();
    PyEval_RestoreThread(state);
    return error;
}

int64_t elapsed_ns(void* start, void* end) {
    float ms = 0;  // ROCm's events may read zero or a little less for very short intervals
    if (gpu.elapsed(&ms, start, end) || !(ms > 0)) ms = 0;
    return int64_t(double(ms) * 1e6);
}

// Queue the delay, behind an event.
int queue_delay() {
    if (const int error = gpu.record(before_event, nullptr)) return error;
    return gpu.launch(delay.function, delay.blocks, 1, 1, delay.threads, 1, 1, delay.shared_bytes, nullptr,
                      delay.arguments, nullptr);
}

// Copy outputs on a GPU's default stream, behind whatever that stream waits for. What another stream has not written by
// then is missing in the copies. Pieces in random order: a copy that follows a writer would never overtake it.
int copy_in_order(const std::vector<Place>& places, char* outbox) {
    struct Piece {
        char* to;
        const char* from;
        size_t size;
    };
    std::vector<Piece> pieces;
    for (const Place& place : places) {
        const size_t most = place.size / PIECES + 1;
        for (size_t at = 0; at < place.size; at += most)
            pieces.push_back({outbox + at, place.start + at, std::min(most, place.size - at)});
        outbox += place.size;
    }
    static std::minstd_rand random(std::random_device{}());
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (const Piece& piece : pieces)
        if (const int error = gpu.copy_in_order(piece.to, piece.from, piece.size, ANY_DIRECTION, nullptr)) return error;
    return 0;
}

// As `sched_setattr` takes it (its first version, which every kernel knows); glibc declares it from 2.41 on.
struct Scheduling {
    uint32_t size = sizeof(Scheduling), policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};

enum WakePriority { NORMAL, SHORT_SLICE, REAL_TIME };

// Evaluator: while it waits for the completion signal, its thread is scheduled before others: by real-time priority, or,
// where only root may have that, by a short time slice, with which a waking thread preempts others (Linux 6.12 and
// newer). Otherwise a pool of the kernel's that spins on every core delays the reading of the clock by 100 us and more.
class Urgent {
  public:
    Urgent() {
        if (!get(usual)) return;
        Scheduling real_time = {}, short_slice = usual, now = {};
        real_time.policy = SCHED_FIFO, real_time.priority = sched_get_priority_min(SCHED_FIFO);
        short_slice.runtime_ns = SLICE_NS;
        if (usual.policy == SCHED_FIFO || usual.policy == SCHED_RR) {
            priority = REAL_TIME;
        } else if (set(real_time)) {
            priority = REAL_TIME, changed = true;
        } else if (set(short_slice)) {
            changed = true;
            if (get(now) && now.runtime_ns == SLICE_NS) priority = SHORT_SLICE;  // older systems accept and ignore it
        }
    }
    ~Urgent() {
        if (changed) set(usual);
    }
    Urgent(const Urgent&) = delete;
    WakePriority priority = NORMAL;

  private:
    static constexpr uint64_t SLICE_NS = 100000;  // the shortest there is
    static bool get(Scheduling& found) { return syscall(SYS_sched_getattr, 0, &found, sizeof found, 0) == 0; }
    static bool set(Scheduling wanted) { return syscall(SYS_sched_setattr, 0, &wanted, 0) == 0; }
    Scheduling usual;
    bool changed = false;
};

}  // namespace

extern "C" {

// Of a row of calls, by the worker.
struct Stamps {
    int64_t ns;        // CLOCK_MONOTONIC
    int64_t cpu_ns;    // CPU time of all threads
    int64_t switches;  // involuntary context switches
    int64_t event_ns;  // between two events of a GPU around the row; 0 where they report nothing usable
    int64_t ahead_ns;  // of the delay before the first of them; 0 without one, or where the events report nothing usable
    int64_t error;     // of the GPU's runtime at the end of the row; 0: none
    int64_t placed;    // whether the outputs' places were found
};

void lab_bind(void* const* objects) { memcpy(&bound, objects, sizeof bound); }

// Worker: bind the functions of a GPU's runtime. Returns the runtime's error code of their first use.
int lab_bind_gpu(void* const* functions) {
    memcpy(&gpu, functions, sizeof gpu);
    for (void** event : {&before_event, &start_event, &end_event})
        if (const int error = gpu.create(event)) return error;
    return 0;
}

void lab_bind_delay(const Delay* kernel) { delay = *kernel; }

int lab_gpu_synchronize() { return gpu.synchronize(); }

int lab_gpu_copy(void* to, const void* from, size_t bytes) { return gpu.copy(to, from, bytes, ANY_DIRECTION); }

// Worker: call the kernel once on older inputs (`warm`, may be null), so that its code is in the caches; wait at the
// barrier, call it once for each of `inputs`, signal completion with the places of the outputs. Then, as the evaluator
// asks, copy the outputs to an offset from `shared` ('c', the offset), or go on ('g'). Returns the list of outputs, or
// null with the exception of the kernel. On a GPU the device is idle, on all streams, when the clocks start and stop;
// `queued`: its first event lies behind a delay, during which the calls are launched. Its outputs are copied to `outbox`
// at once, one after the other, if they take at most `room` bytes.
void* lab_row(void* kernel, void* warm, void* inputs, Stamps* stamps, int socket, char* shared, char* outbox,
              int64_t room, int queued) {
    Barrier* barrier = (Barrier*)shared;
    const long count = PySequence_Size(inputs);
    std::vector<Place> places;
    places.reserve(MOST_PLACES);
    void* outputs = PyList_New(count);
    bool placed = true, raised = false;
    long done = 0;
    if (warm) {
        void* output = PyObject_CallOneArg(kernel, warm);
        raised = !output;
        if (output) Py_DecRef(output);
    }
    if (gpu.release) gpu.release();
    synchronize();
    sigset_t every, usual;  // a handler of the kernel's could run here, before its time begins
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &usual);
    barrier->state.store(CLOSED);
    say(socket, "r", 1);
    for (uint32_t turn = 1, state; (state = barrier->state.load(std::memory_order_acquire)) != OPEN; ++turn) {
        barrier->alive.store(turn, std::memory_order_relaxed);
        if (state == SETTLE) {  // with Python's lock held, so that no other thread of the kernel runs meanwhile
            if (gpu.record) gpu.record(before_event, nullptr), gpu.synchronize();
            barrier->state.store(SETTLED);
        }
        if (turn % 1024 == 0) sched_yield();
#if defined(__SSE2__)
        _mm_pause();
#endif
    }
    pthread_sigmask(SIG_SETMASK, &usual, nullptr);
    const int64_t switches = involuntary_switches(), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), start = now_ns();
    int error = gpu.record && queued ? queue_delay() : 0;
    if (gpu.record) gpu.record(start_event, nullptr);
    for (; done < count && !raised; ++done) {
        void* data = PySequence_GetItem(inputs, done);
        void* output = PyObject_CallOneArg(kernel, data);
        Py_DecRef(data);
        raised = !output;
        if (raised) break;
        PyList_SetItem(outputs, done, output);
        placed = placed && find(output, places);
    }
    if (gpu.record) gpu.record(end_event, nullptr);
    size_t total = 0;
    for (const Place& place : places) total += place.size;
    if (gpu.copy && !raised && placed && total <= size_t(room) && !error) error = copy_in_order(places, outbox);
    if (const int late = synchronize()) error = late;
    const int64_t span = now_ns() - start;
    struct {
        int64_t count;
        Place places[MOST_PLACES];
    } message;
    message.count = raised ? RAISED : placed ? int64_t(places.size()) : NO_PLACES;
    const size_t found = std::max<int64_t>(message.count, 0);
    std::copy_n(places.begin(), found, message.places);
    say(socket, &message, sizeof message.count + found * sizeof(Place));
    const int64_t cpu_spent = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu, switched = involuntary_switches() - switches;
    for (char order = 0; order != 'g';) {
        hear(socket, &order, 1);
        if (order != 'c') continue;
        int64_t offset = 0;
        hear(socket, &offset, sizeof offset);
        for (size_t i = 0; i < found; offset += places[i++].size) {
            memcpy(shared + offset, places[i].start, places[i].size);
        }
        say(socket, "c", 1);
    }
    const bool usable = gpu.elapsed && !error;
    const int64_t event_ns = usable ? elapsed_ns(start_event, end_event) : 0;
    const int64_t ahead_ns = usable && queued ? elapsed_ns(before_event, start_event) : 0;
    *stamps = {span, cpu_spent, switched, event_ns, ahead_ns, error, placed};
    if (raised) Py_DecRef(outputs);
    return raised ? nullptr : outputs;
}

// Evaluator: let the threads go on. One that was killed meanwhile stays a zombie, and its process with it, until its
// tracer has waited for it.
void lab_resume(const int* stopped, int count) {
    for (int i = 0; i < count; ++i) {
        const int thread = stopped[2 * i];
        if (!thread || !ptrace(PTRACE_DETACH, thread, nullptr, (void*)(long)stopped[2 * i + 1])) continue;
        const int64_t deadline = now_ns() + 1000000000;
        for (int status = 0, got = 0; got == 0 && now_ns() < deadline; sched_yield()) {
            got = waitpid(thread, &status, __WALL | WNOHANG);
            if (got > 0 && WIFSTOPPED(status)) ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
        }
    }
}

// Evaluator: stop all threads of a process but the one to spare, from outside (ptrace). `stopped`: two numbers per thread,
// its id and the signal to deliver when it goes on. Returns how many were stopped, or a negative error number.
int lab_stop(int pid, int spare, int* stopped, int most, int64_t limit_ms) {
    const int64_t deadline = now_ns() + limit_ms * 1000000;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    int count = 0;
    for (bool more = true; more;) {  // a thread that was not stopped yet may have started another
        more = false;
        DIR* folder = opendir(path);
        if (!folder) return count ? count : -errno;
        const int first = count;
        while (const dirent* entry = readdir(folder)) {
            const int thread = atoi(entry->d_name);
            if (thread <= 0 || thread == spare || count == most) continue;
            int known = 0;
            while (known < count && stopped[2 * known] != thread) ++known;
            if (known < count) continue;
            if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr)) {
                if (errno == ESRCH) continue;  // it has ended
                const int error = errno;
                closedir(folder);
                lab_resume(stopped, first);
                return -error;
            }
            ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
            stopped[2 * count] = thread, stopped[2 * count + 1] = 0;
            ++count, more = true;
        }
        closedir(folder);
        for (int i = first; i < count; ++i) {
            int status = 0, got = 0;
            while ((got = waitpid(stopped[2 * i], &status, __WALL | WNOHANG)) == 0 && now_ns() < deadline) sched_yield();
            if (got == 0) {
                lab_resume(stopped, count);
                return -ETIME;
            }
            if (got < 0 || !WIFSTOPPED(status)) {
                stopped[2 * i] = 0;  // it has ended
            } else if (status >> 16 == 0) {
                stopped[2 * i + 1] = WSTOPSIG(status);  // it was stopped by a signal of its own
            }
        }
    }
    return count;
}

// Evaluator: let a GPU's worker that waits at the barrier make the GPU its own, after the evaluator has used it: to
// switch between processes takes a GPU 0.15 ms, which would lie in the time of the row. Returns as `await`.
int lab_settle(int socket, char* shared, int64_t limit_ms) {
    Barrier* barrier = (Barrier*)shared;
    const int64_t deadline = now_ns() + limit_ms * 1000000;
    barrier->state.store(SETTLE, std::memory_order_release);
    while (barrier->state.load(std::memory_order_acquire) == SETTLE) {
        pollfd gone = {socket, POLLIN, 0};
        if (poll(&gone, 1, 0) && gone.revents) return 2;
        if (now_ns() > deadline) return 1;
    }
    return 0;
}

// Evaluator: let the stopped threads of the worker go on (`lab_stop`; their number becomes 0), open the barrier, and wait
// for the completion signal: one call, so that the threads have no time before the clock starts. On a GPU (`settled`) the
// barrier opens first, as the delay before the calls is longer. `wall_ns`: from opening to signal by this process's clock.
// `places`, `found`: where the outputs lie, and their number (NO_PLACES, RAISED). Returns as `await`; 3 for an impossible
// message. `more`: see `in_time`; asked at once, so that its first answer is the limit.
int lab_run(int socket, char* shared, More more, int64_t* wall_ns, Place* places, int64_t* found, int* stopped,
            int* count, int settled) {
    Barrier* barrier = (Barrier*)shared;
    int64_t deadline = 0;
    if (!in_time(deadline, more)) return 1;
    const uint32_t before = barrier->alive.load();
    while (barrier->alive.load(std::memory_order_relaxed) == before) {
        pollfd gone = {socket, POLLIN, 0};
        if (poll(&gone, 1, 0) && gone.revents) return 2;
        if (!in_time(deadline, more)) return 1;
        sched_yield();
    }
    const auto resume = [&] { lab_resume(stopped, *count), *count = 0; };
    if (!settled) resume();
    const int64_t opened = now_ns();
    barrier->state.store(OPEN, std::memory_order_release);
    if (settled) resume();
    {
        const Urgent urgent;
        if (const int failed = await(socket, found, sizeof *found, deadline, more)) return failed;
        *wall_ns = now_ns() - opened;
    }
    if (*found < RAISED || *found > MOST_PLACES) return 3;
    if (*found > 0) {
        if (const int failed = await(socket, places, *found * sizeof(Place), deadline, more)) return failed;
        for (int64_t i = 0; i < *found; ++i)
            if (places[i].size > size_t(1) << 50) return 3;
    }
    return 0;
}

// How soon this thread would wake (`WakePriority`).
int lab_wake_priority() { return Urgent().priority; }

// Write past the caches: what is written here is not in them when the kernel reads it, nor what was there before.
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

}  // extern "C"
