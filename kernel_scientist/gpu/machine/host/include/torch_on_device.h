// Tensors lie in main memory and are the device's: what host code asks about them has the device's answer. Ours; after
// all headers of torch, before the submission's own text.
#pragma once
#define is_cuda() is_cpu()
#define is_hip() is_cpu()
#define kCUDA kCPU
#define kHIP kCPU
#define CUDA CPU  // DeviceType::CUDA, and keys of operators
