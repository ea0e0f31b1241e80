// Device memory: main memory that is registered with the machine, with guard bytes around it.
#include "state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/resource.h>

namespace stand_in {
namespace {

struct Place {
    size_t bytes;
    char* block;  // what was allocated; null for memory of the host that was registered
    bool host;
};
std::mutex lock;
std::map<uint64_t, Place> places;
size_t used;

std::string mib(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

constexpr size_t GUARD = 4096;  // before and after; also the alignment

hipError_t allocate(void** out, size_t bytes, bool host = false) {
    if (!out) return ended(hipErrorInvalidValue);
    *out = nullptr;
    if (!bytes) return hipSuccess;
    const size_t most = machine ? machine->device.memory_bytes : 0;
    std::lock_guard<std::mutex> guard(lock);
    if (bytes > most || used + bytes > most) return ended(hipErrorOutOfMemory);
    const size_t whole = (bytes + GUARD - 1) / GUARD * GUARD + 2 * GUARD;
    char* block = (char*)aligned_alloc(GUARD, whole);
    if (!block) {
        rlimit limit{};
        getrlimit(RLIMIT_DATA, &limit);
        const std::string of = limit.rlim_cur == RLIM_INFINITY ? "of this host" : "of " + mib(limit.rlim_cur) + ", which harness.memory_mib sets";
        (void)refused("hipMalloc", "its " + mib(bytes) + " do not fit into a worker's memory " + of + "; " + mib(used) + " are allocated already");
        return ended(hipErrorOutOfMemory);
    }
    *out = block + GUARD;
    used += bytes;
    places[(uint64_t)*out] = {bytes, block, host};
    machine->allocated((uint64_t)*out, bytes);
    return hipSuccess;
}

hipError_t release(const char* function, void* pointer) {
    if (!pointer) return hipSuccess;
    std::lock_guard<std::mutex> guard(lock);
    const auto place = places.find((uint64_t)pointer);
    if (place == places.end())
        return refused(function, "its pointer is not the start of an allocation that is in use", hipErrorInvalidValue);
    machine->freed(place->first);
    used -= place->second.block ? place->second.bytes : 0;
    free(place->second.block);
    places.erase(place);
    return hipSuccess;
}

// The allocation around an address, or the end.
std::map<uint64_t, Place>::iterator around(uint64_t address) {
    auto place = places.upper_bound(address);
    if (place == places.begin()) return places.end();
    --place;
    return address < place->first + place->second.bytes ? place : places.end();
}

// Whether so many bytes from here on lie in the allocation that the first one lies in. Unknown memory is not ours.
bool inside(const void* pointer, size_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    const auto place = around((uint64_t)pointer);
    return place == places.end() || bytes <= place->first + place->second.bytes - (uint64_t)pointer;
}

// 1: memory of the device; 2: of the host; 0: not ours.
int place_of(const void* pointer) {
    std::lock_guard<std::mutex> guard(lock);
    const auto place = around((uint64_t)pointer);
    return place == places.end() ? 0 : place->second.host ? 2 : 1;
}

// The inputs' memory is closed to host code, but not to the runtime.
struct Use {
    Use() { if (machine) machine->use(1); }
    ~Use() { if (machine) machine->use(0); }
};

hipError_t checked(const char* function, const void* pointer, size_t bytes) {
    if (!pointer) return refused(function, "one of its pointers is null", hipErrorInvalidValue);
    if (inside(pointer, bytes)) return hipSuccess;
    return refused(function, "its " + std::to_string(bytes) + " bytes go beyond the end of an allocation",
                   hipErrorInvalidValue);
}

// Rows of a copy; it is one copy to the device.
struct Rows {
    size_t to_pitch, from_pitch, width, height;
};

hipError_t copy(const char* function, void* to, const void* from, const Rows& rows, int to_place, int from_place) {
    if (failure()) return ended(failure());
    if (!rows.width || !rows.height) return hipSuccess;
    if (const hipError_t error = checked(function, to, (rows.height - 1) * rows.to_pitch + rows.width)) return error;
    if (const hipError_t error = checked(function, from, (rows.height - 1) * rows.from_pitch + rows.width)) return error;
    {
        Use use;
        for (size_t row = 0; row < rows.height; ++row)
            memmove((char*)to + row * rows.to_pitch, (const char*)from + row * rows.from_pitch, rows.width);
    }
    if (!machine) return hipSuccess;
    for (size_t row = 0; row < rows.height; ++row) machine->written((uint64_t)to + row * rows.to_pitch, rows.width);
    machine->copied((uint64_t)to, (uint64_t)from, rows.width * rows.height, to_place, from_place);
    return hipSuccess;
}

hipError_t copy(const char* function, void* to, const void* from, size_t bytes) {
    return copy(function, to, from, {bytes, bytes, bytes, 1}, place_of(to), place_of(from));
}

hipError_t copy_rows(const char* function, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                     size_t height) {
    if (to_pitch < width || from_pitch < width) return ended(hipErrorInvalidValue);
    return copy(function, to, from, {to_pitch, from_pitch, width, height}, place_of(to), place_of(from));
}

template <typename T>
hipError_t fill(const char* function, void* to, T value, size_t count, size_t pitch = 0, size_t height = 1) {
    if (failure()) return ended(failure());
    if (!count || !height) return hipSuccess;
    if (const hipError_t error = checked(function, to, (height - 1) * pitch + count * sizeof(T))) return error;
    {
        Use use;
        for (size_t row = 0; row < height; ++row) std::fill_n((T*)((char*)to + row * pitch), count, value);
    }
    if (!machine) return hipSuccess;
    for (size_t row = 0; row < height; ++row) machine->written((uint64_t)to + row * pitch, count * sizeof(T));
    machine->copied((uint64_t)to, 0, count * sizeof(T) * height, place_of(to), 0);
    return hipSuccess;
}

// Where a variable of the device lies.
hipError_t located(const char* function, const void* symbol, char** address, size_t* bytes) {
    const Symbol* variable = variable_of(symbol);
    if (!variable) return refused(function, "its symbol is no variable of the device", hipErrorInvalidSymbol);
    if (const hipError_t error = variable->code->load()) return error;
    uint64_t place = 0, size = 0;
    if (machine->symbol(variable->code->handle, variable->name.c_str(), &place, &size))
        return ended(hipErrorInvalidSymbol);
    *address = (char*)place, *bytes = size;
    return hipSuccess;
}

hipError_t copy_symbol(const char* function, const void* symbol, void* with, size_t bytes, size_t offset, bool to) {
    char* address;
    size_t size;
    if (const hipError_t error = located(function, symbol, &address, &size)) return error;
    if (offset > size || bytes > size - offset)
        return refused(function, "it copies " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                       " of a variable of " + std::to_string(size), hipErrorInvalidValue);
    const Rows rows = {bytes, bytes, bytes, 1};
    return to ? copy(function, address + offset, with, rows, 1, place_of(with))
              : copy(function, with, address + offset, rows, place_of(with), 1);
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;

SERVED hipError_t hipMalloc(void** out, size_t bytes) { return allocate(out, bytes); }
SERVED hipError_t hipMallocAsync(void** out, size_t bytes, hipStream_t) { return allocate(out, bytes); }
SERVED hipError_t hipExtMallocWithFlags(void** out, size_t bytes, unsigned) { return allocate(out, bytes); }
SERVED hipError_t hipMallocFromPoolAsync(void** out, size_t bytes, hipMemPool_t, hipStream_t) {
    return allocate(out, bytes);
}
SERVED hipError_t hipMallocManaged(void** out, size_t bytes, unsigned) { return allocate(out, bytes, true); }
SERVED hipError_t hipHostMalloc(void** out, size_t bytes, unsigned) { return allocate(out, bytes, true); }
SERVED hipError_t hipHostAlloc(void** out, size_t bytes, unsigned) { return allocate(out, bytes, true); }
SERVED hipError_t hipMallocHost(void** out, size_t bytes) { return allocate(out, bytes, true); }
SERVED hipError_t hipMemAllocHost(void** out, size_t bytes) { return allocate(out, bytes, true); }
SERVED hipError_t hipMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
    if (!pitch) return ended(hipErrorInvalidValue);
    *pitch = (width + 255) / 256 * 256;
    return allocate(out, *pitch * height);
}
SERVED hipError_t hipFree(void* pointer) { return release("hipFree", pointer); }
SERVED hipError_t hipFreeAsync(void* pointer, hipStream_t) { return release("hipFreeAsync", pointer); }
SERVED hipError_t hipHostFree(void* pointer) { return release("hipHostFree", pointer); }
SERVED hipError_t hipFreeHost(void* pointer) { return release("hipFreeHost", pointer); }
SERVED hipError_t hipHostRegister(void* pointer, size_t bytes, unsigned) {
    if (!pointer || !bytes || !machine) return ended(hipErrorInvalidValue);
    std::lock_guard<std::mutex> guard(lock);
    places[(uint64_t)pointer] = {bytes, nullptr, true};
    const std::string content((const char*)pointer, bytes);  // what the host wrote there stays
    machine->allocated((uint64_t)pointer, bytes);
    memcpy(pointer, content.data(), bytes);
    machine->written((uint64_t)pointer, bytes);
    return hipSuccess;
}
SERVED hipError_t hipHostUnregister(void* pointer) { return release("hipHostUnregister", pointer); }
SERVED hipError_t hipHostGetDevicePointer(void** out, void* pointer, unsigned) {
    if (!out || !pointer) return ended(hipErrorInvalidValue);
    *out = pointer;
    return hipSuccess;
}

SERVED hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind) {
    return copy("hipMemcpy", to, from, bytes);
}
SERVED hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind, hipStream_t) {
    return copy("hipMemcpyAsync", to, from, bytes);
}
SERVED hipError_t hipMemcpyWithStream(void* to, const void* from, size_t bytes, hipMemcpyKind, hipStream_t) {
    return copy("hipMemcpyWithStream", to, from, bytes);
}
SERVED hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void* from, size_t bytes) {
    return copy("hipMemcpyHtoD", to, from, bytes);
}
SERVED hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes) {
    return copy("hipMemcpyDtoH", to, from, bytes);
}
SERVED hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
    return copy("hipMemcpyDtoD", to, from, bytes);
}
SERVED hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, size_t bytes, hipStream_t) {
    return copy("hipMemcpyHtoDAsync", to, from, bytes);
}
SERVED hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes, hipStream_t) {
    return copy("hipMemcpyDtoHAsync", to, from, bytes);
}
SERVED hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t) {
    return copy("hipMemcpyDtoDAsync", to, from, bytes);
}
SERVED hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, hipMemcpyKind) {
    return copy_rows("hipMemcpy2D", to, to_pitch, from, from_pitch, width, height);
}
SERVED hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                   size_t height, hipMemcpyKind, hipStream_t) {
    return copy_rows("hipMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height);
}
SERVED hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, hipMemcpyKind) {
    return copy_symbol("hipMemcpyToSymbol", symbol, (void*)from, bytes, offset, true);
}
SERVED hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                         hipMemcpyKind, hipStream_t) {
    return copy_symbol("hipMemcpyToSymbolAsync", symbol, (void*)from, bytes, offset, true);
}
SERVED hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, hipMemcpyKind) {
    return copy_symbol("hipMemcpyFromSymbol", symbol, to, bytes, offset, false);
}
SERVED hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, hipMemcpyKind,
                                           hipStream_t) {
    return copy_symbol("hipMemcpyFromSymbolAsync", symbol, to, bytes, offset, false);
}
SERVED hipError_t hipGetSymbolAddress(void** out, const void* symbol) {
    size_t bytes;
    return out ? located("hipGetSymbolAddress", symbol, (char**)out, &bytes) : ended(hipErrorInvalidValue);
}
SERVED hipError_t hipGetSymbolSize(size_t* out, const void* symbol) {
    char* address;
    return out ? located("hipGetSymbolSize", symbol, &address, out) : ended(hipErrorInvalidValue);
}

SERVED hipError_t hipMemset(void* to, int value, size_t bytes) {
    return fill<unsigned char>("hipMemset", to, value, bytes);
}
SERVED hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t) {
    return fill<unsigned char>("hipMemsetAsync", to, value, bytes);
}
SERVED hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
    return fill("hipMemsetD8", to, value, count);
}
SERVED hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t) {
    return fill("hipMemsetD8Async", to, value, count);
}
SERVED hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
    return fill("hipMemsetD16", to, value, count);
}
SERVED hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t) {
    return fill("hipMemsetD16Async", to, value, count);
}
SERVED hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
    return fill("hipMemsetD32", to, value, count);
}
SERVED hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t) {
    return fill("hipMemsetD32Async", to, value, count);
}
SERVED hipError_t hipMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
    return fill<unsigned char>("hipMemset2D", to, value, width, pitch, height);
}
SERVED hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, hipStream_t) {
    return hipMemset2D(to, pitch, value, width, height);
}

SERVED hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total) {
    const size_t most = machine ? machine->device.memory_bytes : 0;
    std::lock_guard<std::mutex> guard(lock);
    if (total) *total = most;
    if (free_bytes) *free_bytes = most - used;
    return hipSuccess;
}
SERVED hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t pointer) {
    std::lock_guard<std::mutex> guard(lock);
    const auto place = around((uint64_t)pointer);
    if (place == places.end()) return ended(hipErrorNotFound);
    if (base) *base = (hipDeviceptr_t)place->first;
    if (bytes) *bytes = place->second.bytes;
    return hipSuccess;
}
// Memory of tensors is not ours, and is the device's.
SERVED hipError_t hipPointerGetAttributes(hipPointerAttribute_t* out, const void* pointer) {
    if (!out || !pointer) return ended(hipErrorInvalidValue);
    std::lock_guard<std::mutex> guard(lock);
    const auto place = around((uint64_t)pointer);
    const bool host = place != places.end() && place->second.host;
    *out = {};
    out->memoryType = host ? hipMemoryTypeHost : hipMemoryTypeDevice;
    out->devicePointer = (void*)pointer;
    out->hostPointer = host ? (void*)pointer : nullptr;
    return hipSuccess;
}
SERVED hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int) {
    if (pool) *pool = nullptr;
    return hipSuccess;
}
SERVED hipError_t hipDeviceGetMemPool(hipMemPool_t* pool, int) { return hipDeviceGetDefaultMemPool(pool, 0); }
SERVED hipError_t hipMemPoolSetAttribute(hipMemPool_t, hipMemPoolAttr, void*) { return hipSuccess; }
SERVED hipError_t hipMemPoolTrimTo(hipMemPool_t, size_t) { return hipSuccess; }
SERVED hipError_t hipMemPrefetchAsync(const void*, size_t, int, hipStream_t) { return hipSuccess; }
SERVED hipError_t hipMemAdvise(const void*, size_t, hipMemoryAdvise, int) { return hipSuccess; }
