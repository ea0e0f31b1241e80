// Evaluator: stopping threads, the barrier, its clock, writing past the caches.

namespace {

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

// As `sched_setattr` takes it (its first version, which every kernel knows); glibc declares it from 2.41 on.
struct Scheduling {
    uint32_t size = sizeof(Scheduling), policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};

enum WakePriority { NORMAL, SHORT_SLICE, REAL_TIME };

// Evaluator: from opening the barrier to the completion signal its thread is scheduled before others: by real-time
// priority, or, where only root may have that, by a short time slice, with which a waking thread preempts others (Linux
// 6.12 and newer). Otherwise a pool of the kernel's that spins on every core delays the reading of the clock by 100 us and
// more. The priority is one more than the worker's in a timed row (`Process.take_precedence`).
class Urgent {
  public:
    Urgent() {
        if (!get(usual)) return;
        Scheduling real_time = {}, short_slice = usual, now = {};
        real_time.policy = SCHED_FIFO, real_time.priority = sched_get_priority_min(SCHED_FIFO) + 1;
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

// Whether a thread is ending: the system forbids to trace it.
bool is_ending(int pid, int thread) {
    char path[48], text[512] = {};
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
    FILE* file = fopen(path, "r");
    if (!file) return true;
    const size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char* state = got ? strrchr(text, ')') : nullptr;  // the name before it may contain anything
    return !state || state[2] == 'Z' || state[2] == 'X';
}

}  // namespace

extern "C" {

// Evaluator: the address that a worker has told (`lab_tell_faults`); 0: none.
uint64_t lab_fault(const char* shared) { return ((const Barrier*)shared)->fault.load(); }

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
            if (thread <= 0 || thread == spare) continue;
            int known = 0;
            while (known < count && stopped[2 * known] != thread) ++known;
            if (known < count) continue;
            if (count == most) {
                closedir(folder);
                lab_resume(stopped, count);
                return -E2BIG;
            }
            if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr)) {
                const int error = errno;
                if (error == ESRCH || is_ending(pid, thread)) continue;
                closedir(folder);
                lab_resume(stopped, count);
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
    const Urgent urgent;
    if (!settled) resume();
    const int64_t opened = now_ns();
    barrier->state.store(OPEN, std::memory_order_release);
    if (settled) resume();
    if (const int failed = await(socket, found, sizeof *found, deadline, more)) return failed;
    *wall_ns = now_ns() - opened;
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
