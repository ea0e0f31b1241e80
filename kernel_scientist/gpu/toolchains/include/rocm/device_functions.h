// What ROCm's device libraries do for a kernel's indices and votes, by the compiler's own builtins, so that no call to a
// library that is not linked remains. Ours; included before everything where ROCm itself is not installed.
#pragma once

#ifdef __HIP_DEVICE_COMPILE__
#define KS_OCKL extern "C" inline __attribute__((device, always_inline))

KS_OCKL __SIZE_TYPE__ __ockl_get_local_id(unsigned int d) {
  return d == 0   ? __builtin_amdgcn_workitem_id_x()
         : d == 1 ? __builtin_amdgcn_workitem_id_y()
         : d == 2 ? __builtin_amdgcn_workitem_id_z()
                  : 0;
}
KS_OCKL __SIZE_TYPE__ __ockl_get_group_id(unsigned int d) {
  return d == 0   ? __builtin_amdgcn_workgroup_id_x()
         : d == 1 ? __builtin_amdgcn_workgroup_id_y()
         : d == 2 ? __builtin_amdgcn_workgroup_id_z()
                  : 0;
}
KS_OCKL __SIZE_TYPE__ __ockl_get_local_size(unsigned int d) {
  return d == 0   ? __builtin_amdgcn_workgroup_size_x()
         : d == 1 ? __builtin_amdgcn_workgroup_size_y()
         : d == 2 ? __builtin_amdgcn_workgroup_size_z()
                  : 1;
}
KS_OCKL __SIZE_TYPE__ __ockl_get_num_groups(unsigned int d) {
  return d == 0   ? __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()
         : d == 1 ? __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y()
         : d == 2 ? __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z()
                  : 1;
}
KS_OCKL __SIZE_TYPE__ __ockl_get_global_size(unsigned int d) {
  return d == 0   ? __builtin_amdgcn_grid_size_x()
         : d == 1 ? __builtin_amdgcn_grid_size_y()
         : d == 2 ? __builtin_amdgcn_grid_size_z()
                  : 1;
}
KS_OCKL unsigned int __ockl_lane_u32(void) {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}
// Cooperative launches only: the launch itself fails where workgroups cannot wait for each other.
KS_OCKL int __ockl_grid_is_valid(void) { return 1; }
KS_OCKL bool __ockl_wfany_i32(int e) { return __builtin_amdgcn_uicmp(e, 0, 33) != 0; }
KS_OCKL bool __ockl_wfall_i32(int e) { return __builtin_amdgcn_uicmp(e, 0, 32) == 0; }
KS_OCKL int __ockl_mul24_i32(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
KS_OCKL unsigned int __ockl_mul24_u32(unsigned int a, unsigned int b) { return (a & 0xffffffu) * (b & 0xffffffu); }
KS_OCKL int __ockl_mul_hi_i32(int a, int b) { return (int)(((long)a * b) >> 32); }
KS_OCKL unsigned int __ockl_mul_hi_u32(unsigned int a, unsigned int b) {
  return (unsigned int)(((unsigned long)a * b) >> 32);
}
KS_OCKL float __ocml_rsqrt_f32(float x) { return __builtin_amdgcn_rsqf(x); }
#undef KS_OCKL
#endif
