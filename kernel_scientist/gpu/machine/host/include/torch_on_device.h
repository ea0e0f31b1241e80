// What the submission's own text says otherwise than to a GPU's runtime. Ours; after all headers of torch.
#pragma once

// Tensors lie in main memory and are the device's: what host code asks about them has the device's answer.
#define is_cuda() is_cpu()
#define is_hip() is_cpu()
#define kCUDA kCPU
#define kHIP kCPU
#define CUDA CPU  // DeviceType::CUDA, and keys of operators

// A function that launches gets its line.
#define hipLaunchKernel(...) hipLaunchKernel(stand_in::Here()->*__VA_ARGS__)
#define hipLaunchCooperativeKernel(...) hipLaunchCooperativeKernel(stand_in::Here()->*__VA_ARGS__)
#define hipModuleLaunchKernel(...) hipModuleLaunchKernel(stand_in::Here()->*__VA_ARGS__)
#define hipModuleLaunchCooperativeKernel(...) hipModuleLaunchCooperativeKernel(stand_in::Here()->*__VA_ARGS__)
#define hipExtLaunchKernel(...) hipExtLaunchKernel(stand_in::Here()->*__VA_ARGS__)
#define hipExtLaunchKernelGGL(...) hipExtLaunchKernelGGL(stand_in::Here()->*__VA_ARGS__)
#define hipExtModuleLaunchKernel(...) hipExtModuleLaunchKernel(stand_in::Here()->*__VA_ARGS__)
