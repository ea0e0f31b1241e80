// Worker, on a GPU: its runtime library, the delay, copies.

namespace {

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

}  // namespace

extern "C" {

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

}  // extern "C"
