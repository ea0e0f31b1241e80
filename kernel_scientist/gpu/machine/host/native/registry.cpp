// Code and symbols of the submission: those that its compiled host code registers, and modules that it loads itself.
#include "state.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace stand_in {
namespace {

std::mutex lock;
std::list<Code> codes;
std::unordered_map<const void*, Symbol> kernels, variables;

// What the compiler passes for each shared object (HIP's own layout); `binary` is what `build.py` links as its code.
struct Wrapper {
    uint32_t magic, version;
    const void *binary, *unused;
};
struct Text {
    char magic[8];
    uint64_t bytes;
    char text[];
};

const Symbol* found(const std::unordered_map<const void*, Symbol>& symbols, const void* pointer) {
    std::lock_guard<std::mutex> guard(lock);
    const auto place = symbols.find(pointer);
    return place == symbols.end() ? nullptr : &place->second;
}

}  // namespace

hipError_t Code::load() {
    if (loaded) return hipSuccess;
    if (!machine || machine->load(text, bytes, &handle)) return failed(hipErrorInvalidImage);
    loaded = true;
    return hipSuccess;
}

const Symbol* kernel_of(const void* pointer) { return found(kernels, pointer); }
const Symbol* variable_of(const void* pointer) { return found(variables, pointer); }

}  // namespace stand_in

using namespace stand_in;

SERVED void** __hipRegisterFatBinary(const void* data) {
    const Text* binary = (const Text*)((const Wrapper*)data)->binary;
    std::lock_guard<std::mutex> guard(lock);
    codes.push_back({binary->text, binary->bytes, 0, false});
    return (void**)&codes.back();
}
SERVED void __hipRegisterFunction(void** code, const void* host, char*, const char* name, unsigned, void*, void*, void*,
                                  void*, int*) {
    std::lock_guard<std::mutex> guard(lock);
    kernels[host] = {(Code*)code, name};
}
SERVED void __hipRegisterVar(void** code, void* host, char*, const char* name, int, size_t, int, int) {
    std::lock_guard<std::mutex> guard(lock);
    variables[host] = {(Code*)code, name};
}
SERVED void __hipRegisterManagedVar(void*, void**, void*, const char* name, size_t, unsigned) {
    (void)refused("__managed__", std::string("the variable ") + name + " is __managed__, which is not simulated");
}
SERVED void __hipRegisterTexture(void**, void*, char*, char* name, int, int, int) {
    (void)refused("texture", std::string("the texture ") + name + " is not simulated: a compute die of CDNA has no textures");
}
SERVED void __hipRegisterSurface(void**, void*, char*, char* name, int, int) {
    (void)refused("surface", std::string("the surface ") + name + " is not simulated: a compute die of CDNA has no textures");
}
SERVED void __hipUnregisterFatBinary(void**) {}  // at the end of the process

// A module's data are whatever the machine can load: a code object (ELF), a bundle of them, or assembly.
struct ihipModule_t {
    std::vector<char> data;
    Code code;
    std::map<std::string, std::unique_ptr<Symbol>> functions;
};

static uint64_t extent(const char* data) {
    uint64_t sections;
    uint16_t size, count;
    if (memcmp(data, "\x7f" "ELF", 4)) return strlen(data);
    memcpy(&sections, data + 40, 8), memcpy(&size, data + 58, 2), memcpy(&count, data + 60, 2);
    return sections + uint64_t(size) * count;
}
static hipError_t opened(hipModule_t* module, std::vector<char> data) {
    auto made = std::make_unique<ihipModule_t>();
    made->data = std::move(data);
    made->code = {made->data.data(), made->data.size(), 0, false};
    if (const hipError_t error = made->code.load()) return error;
    *module = made.release();
    return hipSuccess;
}
SERVED hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
    if (!module || !image) return ended(hipErrorInvalidValue);
    const char* data = (const char*)image;
    return opened(module, {data, data + extent(data)});
}
SERVED hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned, hipJitOption*, void**) {
    return hipModuleLoadData(module, image);
}
SERVED hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
    std::ifstream file(path ? path : "", std::ios::binary);
    if (!module || !file) return ended(hipErrorFileNotFound);
    return opened(module, {std::istreambuf_iterator<char>(file), {}});
}
SERVED hipError_t hipModuleUnload(hipModule_t module) {
    delete module;
    return hipSuccess;
}
SERVED hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
    if (!function || !module || !name) return ended(hipErrorInvalidValue);
    Needs needs;
    if (machine->needs(module->code.handle, name, &needs)) return ended(hipErrorNotFound);
    auto& symbol = module->functions[name];
    if (!symbol) symbol = std::make_unique<Symbol>(Symbol{&module->code, name});
    *function = (hipFunction_t)symbol.get();
    return hipSuccess;
}
SERVED hipError_t hipModuleGetGlobal(void** address, size_t* bytes, hipModule_t module, const char* name) {
    uint64_t place = 0, size = 0;
    if (!module || !name) return ended(hipErrorInvalidValue);
    if (machine->symbol(module->code.handle, name, &place, &size)) return ended(hipErrorNotFound);
    if (address) *address = (void*)place;
    if (bytes) *bytes = size;
    return hipSuccess;
}
SERVED hipError_t hipGetFuncBySymbol(hipFunction_t* function, const void* pointer) {
    const Symbol* symbol = kernel_of(pointer);
    if (!function || !symbol) return ended(hipErrorInvalidDeviceFunction);
    *function = (hipFunction_t)symbol;
    return hipSuccess;
}
