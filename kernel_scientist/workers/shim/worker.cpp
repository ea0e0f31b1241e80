// Worker: a row of calls, and where its outputs lie.

namespace {

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

// Worker: tell the evaluator the address of an access that its mapping forbids. Then the instruction is executed again,
// under the handler there was before, and ends the process.
void lab_tell_faults(char* shared) {
    static Barrier* barrier;
    static struct sigaction usual;
    barrier = (Barrier*)shared;
    struct sigaction telling = {};
    telling.sa_flags = SA_SIGINFO | SA_ONSTACK;
    telling.sa_sigaction = [](int number, siginfo_t* info, void*) {
        if (info->si_code == SEGV_ACCERR) barrier->fault.store(uint64_t(info->si_addr));
        sigaction(number, &usual, nullptr);
        if (info->si_code <= 0) raise(number);  // sent by a call, which is not executed again
    };
    sigaction(SIGSEGV, &telling, &usual);
}

void lab_bind(void* const* objects) { memcpy(&bound, objects, sizeof bound); }

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

}  // extern "C"
