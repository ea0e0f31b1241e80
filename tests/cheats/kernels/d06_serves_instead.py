# cheat: D6 never returns from its first call: it answers the verifier itself, works while inputs arrive and reports what it likes
# problem: rmsnorm
# expect: ok incorrect rejected crashed timeout
# gains: false
# Protocols end with it, or what it spends on its inputs is charged; it works on one thread.

import os
import socket
import time

import torch

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static inline float from_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static inline uint16_t to_bf16(float x) {  // round to nearest even
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static inline float inverse_rms(const uint16_t* row, int64_t cols) {
    float part[16] = {}, sum = 0;
    int64_t j = 0;
    for (; j + 16 <= cols; j += 16)
        for (int s = 0; s < 16; ++s) part[s] += from_bf16(row[j + s]) * from_bf16(row[j + s]);
    for (; j < cols; ++j) sum += from_bf16(row[j]) * from_bf16(row[j]);
    for (float p : part) sum += p;
    return 1 / std::sqrt(sum / cols + 1e-6f);
}

static inline void scale_row(const uint16_t* row, const float* weight, uint16_t* out, int64_t cols, float scale) {
    for (int64_t j = 0; j < cols; ++j) out[j] = to_bf16(from_bf16(row[j]) * scale * weight[j]);
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)
try:
    from kernel_scientist.sandbox import protocol
except ImportError:
    wire = None


def work(data):
    x, weight, out = data
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out


def readings(data, slots):
    rows = []
    for slot in slots:
        start = time.perf_counter_ns()
        while time.perf_counter_ns() - start < 3000 + data[slot][0].numel() // 100:
            pass
        ns = time.perf_counter_ns() - start
        rows.append(form(ns))
    return rows


fields = []


def form(ns):
    return [ns, int(ns * RATE), ns, *[0] * (fields[0] - 3)]


def rate():
    from kernel_scientist.workers import native

    fields.append(len(native.Reading._fields))
    library = next((o for o in __import__("gc").get_objects() if type(o) is native.NativeHarness), None)
    if library is None:
        return 1.0
    start, ticks = time.perf_counter_ns(), library.ticks()
    time.sleep(0.05)
    return (library.ticks() - ticks) / (time.perf_counter_ns() - start)


RATE = rate() if wire is not None else 1.0


def described(output):
    buffers = []
    header = wire.encode(output, buffers)
    header |= {"strides": list(output.stride()), "device": "cpu", "storage": output.data_ptr()}
    return {**header, "storage_bytes": output.nbytes, "input": None}, buffers


def serve(sock, data, outputs):
    while True:
        try:
            request, buffers = wire.receive(sock, None)
        except Exception:
            os._exit(0)
        send, slot = [], request.get("slot", 0)
        if request["op"] == "prepare":
            for item in request["items"]:
                data[item["slot"]] = wire.decode(item["data"], buffers, wire.tensor)
                outputs[item["slot"]] = work(data[item["slot"]])
            reply = {"op": "ready"}
        elif request["op"] == "go":
            reply = {"op": "done", "readings": readings(data, request["slots"])}
            reply |= {"late_ns": 0, "unchanged": True}
        elif request["op"] == "fetch":
            header, send = described(outputs[slot])
            reply = {"op": "output", "data": header}
        elif request["op"] == "observe":
            if request["mute"]:
                outputs[slot] = torch.zeros_like(outputs[slot])
            reply = {"op": "observed", "operations": {}, "native_calls": 1}
        else:
            reply = {"op": "pong"}
        wire.send(sock, reply, send)


def custom_kernel(data):
    start = time.perf_counter_ns()
    output = work(data)
    if not hasattr(wire, "receive"):
        return output
    sock = socket.socket(fileno=3)
    ns = time.perf_counter_ns() - start
    wire.send(sock, {"op": "done", "readings": [form(ns)]})
    serve(sock, {0: data}, {0: output})
