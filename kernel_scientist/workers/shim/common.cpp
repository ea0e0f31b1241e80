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
    std::atomic<uint64_t> fault;  // address of an access that its mapping forbids, of which the worker died
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

}  // namespace
